use super::*;

/// Sends back what it gets, on every connection.
async fn echo() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listen");
    let address = listener.local_addr().expect("address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut each = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            each.spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    (address, tasks)
}

struct Line {
    proxy: Proxy,
    _echo: JoinSet<()>,
}

impl Line {
    async fn new() -> Self {
        let (target, tasks) = echo().await;
        let proxy = Proxy::start(0, target, 1).await.expect("proxy");
        Self { proxy, _echo: tasks }
    }

    async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.proxy.address()).await.expect("dial")
    }
}

async fn ask(stream: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Nothing comes within this time.
const SILENCE: Duration = Duration::from_millis(150);

async fn silent(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    tokio::time::timeout(SILENCE, stream.read(&mut byte)).await.is_err()
}

#[tokio::test]
async fn it_carries_both_ways_and_passes_the_end_on() {
    let line = Line::new().await;
    let mut stream = line.dial().await;
    assert_eq!(ask(&mut stream, b"hello").await.expect("echo"), b"hello");
    let large: Vec<u8> = (0..PIECE_BYTES * PIECES_MAX / 4).map(|at| (at % 251) as u8).collect();
    assert_eq!(ask(&mut stream, &large).await.expect("echo"), large);
    stream.shutdown().await.expect("end");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect("the end comes back");
    assert!(rest.is_empty());
    let counted = line.proxy.counted();
    assert_eq!(
        (counted.connections, counted.held, counted.delayed),
        (1, 0, 0),
        "{counted:?}"
    );
    assert!(counted.bytes >= 2 * large.len() as u64, "{counted:?}");
}

#[tokio::test]
async fn a_delay_delays_each_way_and_keeps_the_order() {
    let line = Line::new().await;
    let mut stream = line.dial().await;
    ask(&mut stream, b"x").await.expect("echo");
    let delay = Duration::from_millis(40);
    line.proxy.set(Wire::slow(delay, Duration::from_millis(30)));
    let began = Instant::now();
    let text: Vec<u8> = (0..200).collect();
    let (mut from, mut to) = stream.split();
    let send = async {
        for byte in &text {
            to.write_all(&[*byte]).await.expect("send");
            tokio::task::yield_now().await;
        }
    };
    let receive = async {
        let mut answer = vec![0; text.len()];
        from.read_exact(&mut answer).await.expect("receive");
        answer
    };
    let ((), answer) = tokio::join!(send, receive);
    assert_eq!(answer, text);
    assert!(began.elapsed() >= delay * 2, "{:?}", began.elapsed());
    assert!(line.proxy.counted().delayed > 0);
}

#[tokio::test]
async fn bandwidth_is_a_limit() {
    let line = Line::new().await;
    let mut stream = line.dial().await;
    line.proxy.change(|wire| wire.bytes_per_second = Some(1_000_000));
    let began = Instant::now();
    ask(&mut stream, &vec![7; 200_000]).await.expect("echo");
    // 200 kB at 1 MB/s are 200 ms; the last piece need not wait for the next one.
    assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_held_direction_is_silent_closes_nothing_and_delivers_when_it_heals() {
    for (forward, backward) in [(true, false), (false, true), (true, true)] {
        let line = Line::new().await;
        let mut stream = line.dial().await;
        ask(&mut stream, b"x").await.expect("echo");
        line.proxy.change(|wire| {
            wire.hold_forward = forward;
            wire.hold_backward = backward;
        });
        stream.write_all(b"held").await.expect("send");
        assert!(silent(&mut stream).await, "{forward} {backward}");
        line.proxy.set(Wire::default());
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.expect("it comes");
        assert_eq!(&answer, b"held");
        assert!(line.proxy.counted().held > 0);
    }
}

#[tokio::test]
async fn a_new_connection_through_a_held_wire_hangs_and_works_when_it_heals() {
    let line = Line::new().await;
    line.proxy.set(Wire::held());
    let mut stream = line.dial().await;
    stream.write_all(b"held").await.expect("send");
    assert!(silent(&mut stream).await);
    line.proxy.set(Wire::default());
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await.expect("it comes");
    assert_eq!(&answer, b"held");
}

#[tokio::test]
async fn a_held_wire_takes_no_more_bytes_than_its_queue_and_the_system() {
    let line = Line::new().await;
    let mut stream = line.dial().await;
    ask(&mut stream, b"x").await.expect("echo");
    line.proxy.set(Wire::held());
    // Kernel buffers take a few megabytes; without a bound of our own all of this would be taken.
    let much = vec![1; 256 * 1024 * 1024];
    let sent = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&much)).await;
    assert!(sent.is_err(), "all of it went into a wire that carries nothing");
}

#[tokio::test]
async fn a_reset_is_felt_at_once_and_the_next_connection_works() {
    let line = Line::new().await;
    let mut stream = line.dial().await;
    ask(&mut stream, b"x").await.expect("echo");
    line.proxy.reset();
    let mut byte = [0];
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut byte)).await;
    let error = ended.expect("at once").expect_err("a reset, not an end");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let mut next = line.dial().await;
    assert_eq!(ask(&mut next, b"again").await.expect("echo"), b"again");
    assert_eq!(line.proxy.counted().resets, 1);
}

#[tokio::test]
async fn refused_connections_are_reset_until_it_heals() {
    let line = Line::new().await;
    line.proxy.change(|wire| wire.refuse = true);
    let mut stream = line.dial().await;
    let refused = ask(&mut stream, b"x").await;
    assert!(refused.is_err(), "{refused:?}");
    line.proxy.set(Wire::default());
    let mut stream = line.dial().await;
    assert_eq!(ask(&mut stream, b"again").await.expect("echo"), b"again");
}
