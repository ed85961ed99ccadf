//! The UDP socket of a site, as a transport of our own under the engine's QUIC.
//!
//! A socket of the engine's would make it collect the addresses of all network interfaces, send them to everybody who finishes a
//! handshake, and send packets to any address that a neighbour names, to find more direct ways. With this one it knows of no address but
//! those that it is given to dial and those that packets came from: there is nothing to tell, and what a neighbour names leads nowhere.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::task::{Context, Poll};

use iroh::endpoint::transports::{CustomEndpoint, CustomSender, CustomTransport, RecvInfo, Transmit};
use iroh_base::CustomAddr;
use n0_watcher::{Direct, Watchable};
use noq_udp::RecvMeta;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

/// Tells our addresses from those of other transports.
const UDP: u64 = 0x7061_646d_6d00;

/// An address as the engine keeps it: sixteen bytes, port and scope.
pub(super) fn to_engine(address: SocketAddr) -> CustomAddr {
    let (ip, scope) = match address {
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
    };
    let mut bytes = [0; 22];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..18].copy_from_slice(&address.port().to_le_bytes());
    bytes[18..].copy_from_slice(&scope.to_le_bytes());
    CustomAddr::from_parts(UDP, &bytes)
}

/// The address that was put into it; none if it is not one of ours.
pub(super) fn from_engine(address: &CustomAddr) -> Option<SocketAddr> {
    let bytes: [u8; 22] = address.data().try_into().ok().filter(|_| address.id() == UDP)?;
    let (ip, rest) = bytes.split_first_chunk::<16>()?;
    let (port, scope) = rest.split_first_chunk::<2>()?;
    let (ip, port) = (Ipv6Addr::from(*ip), u16::from_le_bytes(*port));
    let scope = u32::from_le_bytes(scope.try_into().ok()?);
    Some(match ip.to_canonical() {
        IpAddr::V4(v4) => (v4, port).into(),
        IpAddr::V6(v6) => SocketAddrV6::new(v6, port, 0, scope).into(),
    })
}

/// Opens the socket when the engine starts.
#[derive(Debug)]
pub(super) struct Udp {
    pub(super) listen: SocketAddr,
}

impl CustomTransport for Udp {
    fn bind(&self) -> io::Result<Box<dyn CustomEndpoint>> {
        let socket = std::net::UdpSocket::bind(self.listen)?;
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        Ok(Box::new(Bound { socket, addresses: Watchable::new(vec![]) }))
    }
}

#[derive(Debug)]
struct Bound {
    socket: Arc<UdpSocket>,
    /// None, and it stays so: this is what the engine would tell others.
    addresses: Watchable<Vec<CustomAddr>>,
}

impl CustomEndpoint for Bound {
    fn watch_local_addrs(&self) -> Direct<Vec<CustomAddr>> {
        self.addresses.watch()
    }

    fn create_sender(&self) -> Arc<dyn CustomSender> {
        let is_v6 = self.socket.local_addr().is_ok_and(|address| address.is_ipv6());
        Arc::new(Sender { socket: Arc::clone(&self.socket), is_v6 })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [io::IoSliceMut<'_>],
        metas: &mut [RecvMeta],
        infos: &mut [RecvInfo],
    ) -> Poll<io::Result<usize>> {
        let mut n = 0;
        while n < bufs.len().min(metas.len()).min(infos.len()) {
            let mut buffer = ReadBuf::new(&mut bufs[n]);
            let from = match self.socket.poll_recv_from(cx, &mut buffer) {
                Poll::Ready(Ok(from)) => from,
                // Some systems report here that a packet which was sent before did not arrive.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => continue,
                Poll::Ready(Err(error)) if n == 0 => return Poll::Ready(Err(error)),
                Poll::Pending if n == 0 => return Poll::Pending,
                Poll::Ready(Err(_)) | Poll::Pending => break,
            };
            let length = buffer.filled().len();
            metas[n] = RecvMeta::default();
            (metas[n].len, metas[n].stride) = (length, length);
            infos[n] = RecvInfo::new(to_engine(canonical(from)), None);
            n += 1;
        }
        Poll::Ready(Ok(n))
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => (v4, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

#[derive(Debug)]
struct Sender {
    socket: Arc<UdpSocket>,
    is_v6: bool,
}

impl CustomSender for Sender {
    fn is_valid_send_addr(&self, address: &CustomAddr) -> bool {
        from_engine(address).is_some()
    }

    fn poll_send(
        &self,
        _: &mut Context<'_>,
        to: &CustomAddr,
        _: Option<&CustomAddr>,
        transmit: &Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(to) = from_engine(to) else { return Poll::Ready(Ok(())) };
        let to = match to {
            SocketAddr::V4(v4) if self.is_v6 => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            other => other,
        };
        for packet in transmit.contents.chunks(transmit.segment_size.unwrap_or(usize::MAX)) {
            // What the system does not take (its buffer is full, no way leads there, the packet is too long) is lost, as it may be anywhere
            // on its way; QUIC sends it again, more slowly.
            let _ = self.socket.try_send_to(packet, to);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_were() {
        let scoped = SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), 7, 0, 3).into();
        for address in ["192.0.2.1:7000".parse().unwrap(), "[2001:db8::1]:65535".parse().unwrap(), scoped] {
            assert_eq!(from_engine(&to_engine(address)), Some(address));
        }
        assert_eq!(from_engine(&CustomAddr::from_parts(UDP, &[1, 2, 3])), None);
        assert_eq!(from_engine(&CustomAddr::from_parts(UDP + 1, &[0; 22])), None);
    }
}
