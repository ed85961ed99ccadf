//! The fields of frames as bytes: little-endian numbers of a fixed width, one encoding for each value.

use padmm_core::message::{SiteIndex, Stage, Turn};
use padmm_privacy::Payload;

use super::{FrameError, Origin};

/// Takes fields off the front of a frame's bytes.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(FrameError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        Ok(self.take(N)?.try_into().expect("N bytes were taken"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn flag(&mut self, field: &'static str) -> Result<bool, FrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(FrameError::Field { field, value: value.into() }),
        }
    }

    pub(super) fn origin(&mut self) -> Result<Origin, FrameError> {
        Ok(Origin { plan: self.array()?, sender: self.site()? })
    }

    pub(super) fn site(&mut self) -> Result<SiteIndex, FrameError> {
        Ok(SiteIndex(self.u16()?.into()))
    }

    pub(super) fn turn(&mut self) -> Result<Turn, FrameError> {
        let stage = if self.flag("stage")? { Stage::Average } else { Stage::Model };
        Ok(Turn { stage, number: self.counted_from_one("turn")? })
    }

    /// A number that counts from 1.
    pub(super) fn counted_from_one(&mut self, field: &'static str) -> Result<u32, FrameError> {
        match self.u32()? {
            0 => Err(FrameError::Field { field, value: 0 }),
            number => Ok(number),
        }
    }

    /// Eight bytes for each of `n` numbers, checked to be there before anything is allocated.
    fn numbers(&mut self, n: u32) -> Result<impl Iterator<Item = [u8; 8]> + use<'a>, FrameError> {
        let bytes = self.take((n as usize).checked_mul(8).ok_or(FrameError::Short)?)?;
        Ok(bytes.chunks_exact(8).map(|c| c.try_into().expect("chunks of eight")))
    }

    pub(super) fn payload(&mut self) -> Result<Payload, FrameError> {
        let on_grid = self.flag("payload")?;
        let exponent = i32::from_le_bytes(self.array()?);
        let n = self.u32()?;
        let payload = if on_grid {
            Payload::Grid { exponent, values: self.numbers(n)?.map(i64::from_le_bytes).collect() }
        } else if exponent != 0 {
            return Err(FrameError::Field { field: "exponent", value: exponent.unsigned_abs().into() });
        } else {
            Payload::Plain(self.numbers(n)?.map(f64::from_le_bytes).collect())
        };
        payload.check().map_err(|_| FrameError::Absurd)?;
        Ok(payload)
    }
}

/// Puts fields at the end of a frame's bytes.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// How many of something follow, as 16 bits.
    pub(super) fn count(&mut self, n: usize) -> &mut Self {
        self.put(&u16::try_from(n).expect("a contract has at most 1000 sites").to_le_bytes())
    }

    pub(super) fn origin(&mut self, origin: Origin) -> &mut Self {
        self.put(&origin.plan).site(origin.sender)
    }

    pub(super) fn site(&mut self, site: SiteIndex) -> &mut Self {
        self.put(&on_wire(site))
    }

    pub(super) fn turn(&mut self, turn: Turn) -> &mut Self {
        self.put(&[u8::from(turn.stage == Stage::Average)]).put(&turn.number.to_le_bytes())
    }

    pub(super) fn payload(&mut self, payload: &Payload) -> &mut Self {
        let n = u32::try_from(payload.len()).expect("a model has fewer than 2^32 coefficients").to_le_bytes();
        match payload {
            Payload::Grid { exponent, values } => {
                self.put(&[1]).put(&exponent.to_le_bytes()).put(&n);
                values.iter().for_each(|v| self.0.extend_from_slice(&v.to_le_bytes()));
            }
            Payload::Plain(values) => {
                self.put(&[0]).put(&0i32.to_le_bytes()).put(&n);
                values.iter().for_each(|v| self.0.extend_from_slice(&v.to_le_bytes()));
            }
        }
        self
    }
}

/// A site's place as the wire has it.
pub(super) fn on_wire(site: SiteIndex) -> [u8; 2] {
    u16::try_from(site.0).expect("a contract has at most 1000 sites").to_le_bytes()
}
