use bytes::Bytes;
use tokio::io::empty;
use toolwire_transport::lines::Lines;
use toolwire_transport::{Duplex, FairQueue, Source, memory, write_loop};

#[tokio::test]
async fn everything_is_written_in_turn_before_the_sink_is_closed() {
    let (near, far) = memory::pair();
    let (_near_source, sink) = near.split();
    let (mut source, _far_sink) = far.split();
    let queue = FairQueue::new();
    let lane = queue.lane();
    lane.push(Bytes::from(vec![b'x'; 3_000_000])).unwrap();
    lane.push(Bytes::from(vec![b'x'; 3_000_000])).unwrap();
    queue.post(Bytes::from_static(b"small")).unwrap();
    let writer = tokio::spawn(write_loop(queue.clone(), sink));
    assert_eq!(source.receive().await.unwrap().unwrap().len(), 3_000_000);
    assert_eq!(source.receive().await.unwrap().unwrap(), "small");
    lane.finish(Bytes::from_static(b"last")).unwrap();
    queue.close();
    assert_eq!(source.receive().await.unwrap().unwrap().len(), 3_000_000);
    assert_eq!(source.receive().await.unwrap().unwrap(), "last");
    assert!(source.receive().await.unwrap().is_none());
    writer.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_broken_sink_closes_the_queue() {
    let (near, far) = tokio::io::duplex(64);
    drop(far);
    let (_, sink) = Lines::new(empty(), near).split();
    let queue = FairQueue::new();
    let lane = queue.lane();
    lane.push(Bytes::from_static(b"{}")).unwrap();
    write_loop(queue.clone(), sink).await.unwrap_err();
    assert!(queue.is_closed());
    lane.send(Bytes::from_static(b"{}")).await.unwrap_err();
}

#[tokio::test]
async fn a_writer_that_is_dropped_closes_the_queue() {
    let (near, _far) = memory::pair();
    let queue = FairQueue::new();
    let writer = tokio::spawn(write_loop(queue.clone(), near.split().1));
    writer.abort();
    assert!(writer.await.unwrap_err().is_cancelled());
    queue.post(Bytes::from_static(b"{}")).unwrap_err();
}
