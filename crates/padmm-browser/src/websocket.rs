//! As much of a WebSocket client (RFC 6455) as a debugger on the same machine needs: text messages, whole or in parts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::DEADLINE;

const CONTINUED: u8 = 0;
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A connection to the browser's debugger.
pub(crate) struct WebSocket {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl WebSocket {
    /// Connects to `host:port/path`.
    pub(crate) fn connect(address: &str) -> Self {
        let (host, path) = address.split_once('/').unwrap_or_else(|| panic!("no path in {address}"));
        let mut writer = TcpStream::connect(host)
            .unwrap_or_else(|e| panic!("no connection to the browser at {host}: {e}"));
        writer.set_read_timeout(Some(DEADLINE)).expect("a deadline for reading");
        writer.set_nodelay(true).expect("small messages are sent at once");
        // The key only proves that the other side speaks the protocol; any 16 bytes in base64 will do.
        let request = format!(
            "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        writer.write_all(request.as_bytes()).expect("the browser reads the request");
        let mut reader = BufReader::new(writer.try_clone().expect("a second handle of the connection"));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = reader.read_line(&mut head).expect("the browser answers");
            assert!(read > 0, "the browser hung up after: {head}");
        }
        assert!(head.starts_with("HTTP/1.1 101"), "the browser refused the debugger: {head}");
        WebSocket { reader, writer }
    }

    /// Sends a text.
    pub(crate) fn send(&mut self, text: &str) {
        self.write(TEXT, text.as_bytes()).expect("the browser is still there");
    }

    /// Sends a text to a browser that may have gone.
    pub(crate) fn try_send(&mut self, text: &str) {
        let _ = self.write(TEXT, text.as_bytes());
    }

    /// Waits for a text.
    pub(crate) fn receive(&mut self) -> String {
        let mut message = Vec::new();
        loop {
            let (is_last, kind, content) = self.read();
            match kind {
                PING => self.write(PONG, &content).expect("the browser is still there"),
                PONG => {}
                CLOSE => panic!("the browser closed the connection: {}", String::from_utf8_lossy(&content)),
                TEXT | CONTINUED => {
                    message.extend(content);
                    if is_last {
                        return String::from_utf8(message).expect("the browser sends UTF-8");
                    }
                }
                other => panic!("the browser sent a frame of the unknown kind {other}"),
            }
        }
    }

    fn write(&mut self, kind: u8, content: &[u8]) -> std::io::Result<()> {
        let mut frame = vec![0x80 | kind];
        // The highest bit says that the content is masked, as a client's must be.
        match content.len() {
            short @ 0..=125 => frame.push(0x80 | short as u8),
            middle @ 126..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend((middle as u16).to_be_bytes());
            }
            long => {
                frame.push(0x80 | 127);
                frame.extend((long as u64).to_be_bytes());
            }
        }
        // Masks protect proxies from hostile pages; there is no proxy here, and a mask of zeros changes nothing.
        frame.extend([0; 4]);
        frame.extend(content);
        self.writer.write_all(&frame)
    }

    /// One frame: whether it is the last of its message, its kind and its content.
    fn read(&mut self) -> (bool, u8, Vec<u8>) {
        let [first, second] = self.bytes::<2>();
        assert!(second & 0x80 == 0, "a server does not mask");
        let length = match second & 0x7f {
            126 => u64::from(u16::from_be_bytes(self.bytes())),
            127 => u64::from_be_bytes(self.bytes()),
            short => u64::from(short),
        };
        let mut content = vec![0; usize::try_from(length).expect("a message fits into memory")];
        self.fill(&mut content);
        (first & 0x80 != 0, first & 0x0f, content)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        self.reader
            .read_exact(bytes)
            .unwrap_or_else(|e| panic!("the browser said nothing more within {DEADLINE:?}: {e}"));
    }
}
