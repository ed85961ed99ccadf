//! What troubles do to a world, and how each of them ends.

use std::time::Duration;

use super::invariant::Invariant;
use super::schedule::Trouble;
use super::world::{Later, Machine, World};

impl World<'_> {
    pub(super) fn happen(&mut self, trouble: Trouble) {
        let n = self.n_sites();
        match trouble {
            Trouble::Crash { site, points, away, keeps_head } => {
                self.armed.insert(site % self.machines.len(), (points, away, keeps_head));
            }
            Trouble::CrashAll { away } => {
                (0..self.machines.len()).for_each(|machine| self.crash(machine, away, true));
            }
            Trouble::Late { site, time } => {
                let at = self.now + time;
                let starts = self
                    .later
                    .iter_mut()
                    .filter(|(_, what)| matches!(what, Later::Start(s) if *s == site % n));
                starts.for_each(|(when, _)| *when = at);
            }
            Trouble::Deaf { site, neighbour, time } => {
                let (to, from) = self.edge(site, neighbour);
                self.network.cut_way((from, to), true);
                self.at(time, Later::Hear(from, to));
            }
            Trouble::Cut { site, neighbour, time } => {
                let (a, b) = self.edge(site, neighbour);
                self.network.cut(a, b, true);
                self.at(time, Later::Mend(a, b));
            }
            Trouble::Sever { site, neighbour } => {
                let (a, b) = self.edge(site, neighbour);
                self.network.sever(a, b);
            }
            Trouble::Move { site, time } => {
                self.network.relocate(site % n, true);
                self.at(time, Later::ComeBack(site % n));
            }
            Trouble::Hang { site, time } => {
                let machine = site % self.machines.len();
                *self.hanging.entry(machine).or_default() += 1;
                self.at(time, Later::Wake(machine));
            }
            Trouble::Disk { site, fault, commits, time } => {
                self.machines[site % n].disk.will_fail(fault, commits);
                self.at(time, Later::MendDisk(site % n));
            }
            Trouble::Copy { site } => self.copy = Some(self.machines[site % n].disk.copy()),
            Trouble::PutBack { site, away } => {
                if let Some(copy) = self.copy.clone() {
                    self.crash(site % n, away, true);
                    self.machines[site % n].disk.put_back(copy);
                    *self.put_back.entry(site % n).or_default() += 1;
                    self.tally.rollbacks += 1;
                }
            }
            Trouble::Clone { site, after, time } => self.copy_home(site % n, after, time),
            Trouble::Weather { weather } => self.network.set_weather(weather),
        }
    }

    /// A site and one of its neighbours.
    fn edge(&self, site: usize, neighbour: usize) -> (usize, usize) {
        let site = site % self.n_sites();
        let neighbours = self.consortium.contract.neighbours(site);
        (site, neighbours[neighbour % neighbours.len()])
    }

    pub(super) fn at(&mut self, after: Duration, what: Later) {
        self.later.push((self.now + after, what));
    }

    /// The site's home as it is now comes up on another machine, for a while or for good.
    fn copy_home(&mut self, site: usize, after: Duration, time: Option<Duration>) {
        let disk = self.machines[site].disk.same_again();
        self.machines.push(Machine { site, disk, is_copy: true, is_removed: false });
        let machine = self.machines.len() - 1;
        self.at(after, Later::Start(machine));
        if let Some(time) = time {
            self.at(after + time, Later::Remove(machine));
        }
        self.tally.copies_of_homes += 1;
    }

    pub(super) fn do_what_is_due(&mut self) -> Result<(), Invariant> {
        while let Some(k) = self.later.iter().position(|(at, _)| *at <= self.now) {
            match self.later.remove(k).1 {
                Later::Start(machine) => self.start(machine)?,
                Later::Mend(a, b) => self.network.cut(a, b, false),
                Later::Hear(from, to) => self.network.cut_way((from, to), false),
                Later::ComeBack(site) => self.network.relocate(site, false),
                Later::Wake(machine) => {
                    let n = self.hanging.get_mut(&machine).expect("it hangs until it is woken");
                    *n -= 1;
                    if *n == 0 {
                        self.hanging.remove(&machine);
                    }
                }
                Later::MendDisk(site) => self.machines[site].disk.mend(),
                Later::Remove(machine) => {
                    self.machines[machine].is_removed = true;
                    if let Some(process) = self.processes.remove(&machine) {
                        self.network.unplug(process.transport.id);
                    }
                }
            }
        }
        Ok(())
    }
}
