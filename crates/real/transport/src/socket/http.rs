//! Pages over HTTP, for numbers that others fetch: GET and HEAD, one request a connection.

use crate::socket::admission::Admission;
use crate::socket::peers::{AcceptLoop, Peer, Service};
use crate::socket::sockets::{Listen, Listener, OWNER, Stream};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The longest head of a request that is read.
const HEAD_BYTES_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;
/// For a client to ask, and again to take the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// For a client to hang up once it has its answer.
const LINGER: Duration = Duration::from_secs(1);

/// What is served.
pub trait Pages: Send + Sync + 'static {
    /// The answer to GET of a path, without what stands behind its question mark.
    fn page(&self, path: &str) -> Response;

    /// Serves who asks for what is no page, if it does; `head` is the whole of the request's head.
    fn takes(&self, _head: &[u8], _peer: &Peer) -> bool {
        false
    }
}

/// Serves pages over HTTP until it is dropped.
pub struct HttpServer {
    // Dropping it ends its threads.
    _accept_loop: AcceptLoop,
    address: SocketAddr,
}

/// What an HTTP client is told.
#[derive(Clone, Debug)]
pub struct Response {
    /// Code and reason.
    pub status: &'static str,
    /// The media type.
    pub content_type: &'static str,
    /// The page.
    pub body: String,
}

impl HttpServer {
    /// Listens at `at`, for those who are admitted; port 0 is any that is free.
    ///
    /// # Errors
    /// The host's, if nobody can listen there.
    pub fn open(
        at: SocketAddr,
        name: &'static str,
        admission: Admission,
        pages: impl Pages,
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a page is found.
    pub fn uri(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

struct Http<P> {
    admission: Admission,
    pages: P,
}

impl<P: Pages> Service for Http<P> {
    fn serve(&self, peer: &Peer) {
        // Whoever hangs up, or says nothing, needs no answer.
        let Ok(head) = read_head(peer) else { return };
        peer.has_request();
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

    fn admits(&self, stream: &Stream) -> bool {
        self.admission.admits(stream)
    }

    fn refuse(&self, peer: &Peer) {
        let _ =
            Response::text("503 Service Unavailable", "too many connections\n").send(peer, true);
    }
}

impl<P> Http<P> {
    /// The answer to a request that names another host as the one it is for, or that cannot be understood.
    /// Without a name it does not come from a browser, and no page of a stranger sends it.
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

/// Reads a request as far as the empty line that ends its head, or as much as
/// is read of any.
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

/// Waits until the client hangs up. A socket that is closed with unread input
/// (a body that nobody asked for) takes the answer back.
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

/// Fills in the request; the answer to what is none is an error.
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

/// The answer to a request, and whether it asks for more than its head.
fn respond(pages: &impl Pages, head: &[u8]) -> (Response, bool) {
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
    /// Plain text.
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
