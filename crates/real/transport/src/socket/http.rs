//! Pages over HTTP, for metrics: GET and HEAD, one request per connection.

use crate::socket::admission::Admission;
use crate::socket::peers::{AcceptLoop, Peer, PeerService};
use crate::socket::sockets::{ClientSocket, Listen, Listener, OWNER};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest request head, in bytes.
const HEAD_BYTES_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;
/// Time for a client to send its request, and again to take the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a client to close the connection after its answer.
const LINGER: Duration = Duration::from_secs(1);

/// The served pages.
pub trait HttpPages: Send + Sync + 'static {
    /// Returns the answer to GET of a path without its query.
    fn page(&self, path: &str) -> Response;

    /// Takes over a request that asks for no page. Returns true if taken. `head` is the complete
    /// request head.
    fn takes(&self, _head: &[u8], _peer: &Peer) -> bool {
        false
    }
}

/// Serves pages over HTTP until dropped.
pub struct HttpServer {
    // Dropping this field ends the threads.
    _accept_loop: AcceptLoop,
    address: SocketAddr,
}

/// An answer to an HTTP client.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code and reason.
    pub status: &'static str,
    /// Media type.
    pub content_type: &'static str,
    /// Body of the page.
    pub body: String,
}

impl HttpServer {
    /// Listens at `at` for admitted clients; port 0 selects any free port.
    ///
    /// # Errors
    /// An error of the host, if the address cannot be used.
    pub fn open(
        at: SocketAddr,
        name: &'static str,
        admission: Admission,
        pages: impl HttpPages,
    ) -> io::Result<HttpServer> {
        let mut listeners = Listener::open(&Listen::Tcp(at), OWNER)?;
        let listener = listeners.pop().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let address = match &listener {
            Listener::Tcp(socket) => socket.local_addr()?,
            Listener::Unix { .. } => at,
        };
        let accept_loop = AcceptLoop::open(listener, name, Http { admission, pages })?;
        Ok(HttpServer {
            _accept_loop: accept_loop,
            address,
        })
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of a page.
    pub fn uri(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

struct Http<P> {
    admission: Admission,
    pages: P,
}

impl<P: HttpPages> PeerService for Http<P> {
    fn serve(&self, peer: &Peer) {
        // A client that closes the connection, or stays silent, gets no answer.
        let Ok(head) = read_head(peer) else { return };
        peer.has_request();
        // The host is checked before any page is served, `/events` included, because a foreign web
        // page must not read either.
        let strange = self.strange_host(&head, peer);
        if strange.is_none() && self.pages.takes(&head, peer) {
            return;
        }
        let (response, has_body) = strange.unwrap_or_else(|| respond(&self.pages, &head));
        if response.send(peer, has_body).is_ok() {
            peer.awaits_request();
            linger(peer);
        }
    }

    fn admits(&self, stream: &ClientSocket) -> bool {
        self.admission.admits(stream)
    }

    fn refuse(&self, peer: &Peer) {
        let _ =
            Response::text("503 Service Unavailable", "too many connections\n").send(peer, true);
    }
}

impl<P> Http<P> {
    /// Returns the refusal of a request that names another host, or that cannot be parsed. A
    /// request without a host is accepted, because browsers always send one. So no foreign web page
    /// can have caused it.
    fn strange_host(&self, head: &[u8], peer: &Peer) -> Option<(Response, bool)> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        if let Err(response) = parse(&mut request, head) {
            return Some((response, true));
        }
        let hosts = request.headers.iter();
        let mut hosts = hosts.filter(|header| header.name.eq_ignore_ascii_case("host"));
        let host = hosts.next()?;
        let name = std::str::from_utf8(host.value).unwrap_or_default();
        if hosts.next().is_none() && self.admission.knows_host(name, peer.local()) {
            return None;
        }
        let body = "the request is for another host; expected this server's address, localhost, or a name of \
                    --metrics-host\n";
        Some((
            Response::text("421 Misdirected Request", body),
            request.method != Some("HEAD"),
        ))
    }
}

/// Reads a request up to the empty line at the end of its head, or up to the longest head.
fn read_head(peer: &Peer) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + TIMEOUT;
    let mut head = vec![0; HEAD_BYTES_MAX];
    let mut filled = 0;
    while filled < head.len() && !head[..filled].windows(4).any(|end| end == b"\r\n\r\n") {
        match peer.read_by(deadline, &mut head[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    head.truncate(filled);
    Ok(head)
}

/// Waits until the client closes the connection. If a socket is closed with unread input, such as a
/// body, the host resets the connection, and the answer is lost.
fn linger(peer: &Peer) {
    let deadline = Instant::now() + LINGER;
    peer.end_output();
    let mut unread = [0; 4096];
    while Instant::now() < deadline
        && peer
            .read_by(deadline, &mut unread)
            .is_ok_and(|count| count > 0)
    {}
}

/// Parses the request. The answer to an invalid request is returned as an error.
fn parse<'head>(
    request: &mut httparse::Request<'_, 'head>,
    head: &'head [u8],
) -> Result<(), Response> {
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => Ok(()),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            Err(Response::text(
                "431 Request Header Fields Too Large",
                "the request is too long\n",
            ))
        }
        Err(error) => Err(Response::text(
            "400 Bad Request",
            format!("{error}; expected HTTP\n"),
        )),
    }
}

/// Returns the answer to a request, and true if the client wants its body.
fn respond(pages: &impl HttpPages, head: &[u8]) -> (Response, bool) {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if let Err(response) = parse(&mut request, head) {
        return (response, true);
    }
    let path = request.path.unwrap_or_default();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let response = match request.method.unwrap_or_default() {
        "GET" | "HEAD" => pages.page(path),
        _ => Response::text("405 Method Not Allowed", "the numbers are read with GET\n"),
    };
    (response, request.method != Some("HEAD"))
}

impl Response {
    /// Creates an answer of plain text.
    pub fn text(status: &'static str, body: impl Into<String>) -> Response {
        Response {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    fn send(&self, peer: &Peer, has_body: bool) -> io::Result<()> {
        let Response {
            status,
            content_type,
            body,
        } = self;
        let length = body.len();
        let mut message = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Allow: GET, HEAD\r\nConnection: close\r\n\r\n"
        );
        if has_body {
            message.push_str(body);
        }
        peer.write_by(Instant::now() + TIMEOUT, message.as_bytes())
    }
}
