internal import Foundation

/// What has been received of a body and is still wanted: chunks, each with the number of readers that have not had it yet.
///
/// Readers are positions, counted in chunks from the body's start, so taking and dropping chunks costs O(1) however many readers
/// there are. Nothing is copied: a reader gets the chunk's own storage.
struct TransferSpool {
  private struct Chunk {
    var data: Data
    var unread: Int
  }

  private var chunks: [Chunk] = []
  /// `chunks` before this place are dropped already; they are cut off in batches.
  private var dropped = 0
  /// The body's position of `chunks[0]`.
  private var base = 0

  /// Bytes kept for a reader that may still join; beyond them, what everybody has read is dropped.
  let joinLimit: Int
  /// Bytes that are held now.
  private(set) var retainedBytes = 0
  /// Whether the body's start is gone, so that nobody can join any more.
  private(set) var hasDropped = false
  /// Set at the transfer's end: nobody joins any more, so read chunks go at once.
  var isComplete = false { didSet { trim() } }

  init(joinLimit: Int) { self.joinLimit = joinLimit }

  /// The position after the last chunk.
  var end: Int { base + chunks.count }

  /// Adds a chunk that `readers` are going to read.
  mutating func append(_ data: Data, readers: Int) {
    chunks.append(Chunk(data: data, unread: readers))
    retainedBytes += data.count
    trim()
  }

  /// Hands out the chunk at `position` to one of its readers.
  mutating func take(at position: Int) -> Data {
    let place = position - base
    let data = chunks[place].data
    chunks[place].unread -= 1
    trim()
    return data
  }

  /// One more reader, from the body's start; only while ``hasDropped`` is false.
  mutating func join() {
    for place in dropped..<chunks.count { chunks[place].unread += 1 }
  }

  /// A reader that stands at `position` goes away.
  mutating func leave(at position: Int) {
    for place in (position - base)..<chunks.count { chunks[place].unread -= 1 }
    trim()
  }

  private mutating func trim() {
    guard isComplete || hasDropped || retainedBytes > joinLimit else { return }
    while dropped < chunks.count, chunks[dropped].unread == 0 {
      retainedBytes -= chunks[dropped].data.count
      chunks[dropped].data = Data()
      dropped += 1
      hasDropped = true
    }
    if dropped > 32, dropped * 2 > chunks.count {
      chunks.removeFirst(dropped)
      base += dropped
      dropped = 0
    }
  }
}
