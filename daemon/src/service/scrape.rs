//! What monitoring asks by TCP: `GET /metrics`, and nothing else. Whoever reaches the port may ask, so that whoever asks gets little: one
//! answer a connection, few connections at once, and little time.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::{http::Service, jobs::Format};

/// Connections at once. Who comes then waits, in the kernel.
const MOST: usize = 64;
/// For a connection, from beginning to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// For its question. Who says nothing must not keep others from asking.
const QUESTION: Duration = Duration::from_secs(1);
/// What may be waiting of a connection, bytes.
const BUFFER: usize = 16 << 10;

/// Serves whoever connects, for ever.
pub(super) async fn serve(listener: TcpListener, service: Arc<Service>) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(turn) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let service = Arc::clone(&service);
                tokio::spawn(async move {
                    // Who is too slow, or goes away, has none.
                    let _ = timeout(PATIENCE, serve_one(stream, &service)).await;
                    drop(turn);
                });
            }
            // Of one who has gone already, or for want of descriptors for a moment.
            Err(error) => {
                tracing::warn!("nobody can ask for metrics: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_one(stream: TcpStream, service: &Service) {
    let answered = service_fn(|request| async move { Ok::<_, Infallible>(answer(&request, service)) });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).keep_alive(false).header_read_timeout(QUESTION).max_buf_size(BUFFER);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), answered).await {
        tracing::debug!("a connection ended: {error}");
    }
}

fn answer(request: &Request<Incoming>, service: &Service) -> Response<Full<Bytes>> {
    let format = Format::accepted(request.headers().get_all(ACCEPT).iter().map(HeaderValue::as_bytes));
    let (status, kind, content) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, format.content_type(), service.metrics(format)),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".into()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "there is /metrics\n".into()),
    };
    let mut answer = Response::new(Full::new(content));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
