import Foundation
import HTTPTypes
import Testing

@testable import CacheCore

@Suite("The writer that collects a body", .timeLimit(.minutes(1)))
struct CollectingWriterTests {
  private final class Published: Sendable {
    private let entries = Lock<[(metadata: StoredMetadata, body: Data)]>([])

    var all: [(metadata: StoredMetadata, body: Data)] { entries.withLock { $0 } }

    func append(_ metadata: StoredMetadata, _ body: Data) { entries.withLock { $0.append((metadata, body)) } }
  }

  private let published = Published()

  private var metadata: StoredMetadata {
    let now = Timestamp(seconds: 1_000)
    return StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/"),
      response: HTTPResponse(status: .ok), requestTime: now, responseTime: now, revision: .random(),
      freshness: Freshness(generatedAt: now, freshUntil: now))
  }

  private func writer(sizeLimit: Int = .max, failingWith error: CacheError? = nil) -> CollectingWriter {
    CollectingWriter(metadata, sizeLimit: sizeLimit) { [published] metadata, body throws(CacheError) in
      if let error { throw error }
      published.append(metadata, body)
    }
  }

  /// Returns when a reader waits for bytes.
  private func readerWaits(_ writer: CollectingWriter) async { while writer.waitingReaders == 0 { await Task.yield() } }

  private func failure(_ work: () async throws(CacheError) -> Void) async -> CacheError? {
    do throws(CacheError) {
      try await work()
      return nil
    } catch {
      return error
    }
  }

  @Test("a commit publishes the whole body once, with its length and its trailers")
  func commit() async throws {
    let writer = writer()
    try await writer.write(Data("one ".utf8))
    try await writer.write(Data("two".utf8))
    #expect(published.all.isEmpty)
    let stored = try await writer.commit(trailers: [.eTag: "\"1\""])
    #expect(stored.bodyLength == 7 && stored.trailers?[.eTag] == "\"1\"")
    #expect(published.all.map(\.body) == [Data("one two".utf8)])
    #expect(published.all.first?.metadata == stored)
  }

  @Test("readers follow from the first byte, wait for more bytes, and end with the commit")
  func readers() async throws {
    let writer = writer()
    try await writer.write(Data("one ".utf8))
    let body = try writer.reader()
    #expect(try await body.source.next() == Data("one ".utf8))
    async let rest = body.source.next()
    await readerWaits(writer)
    try await writer.write(Data("two".utf8))
    #expect(try await rest == Data("two".utf8))
    let late = try writer.reader()
    async let end = body.source.next()
    await readerWaits(writer)
    _ = try await writer.commit(trailers: [.eTag: "\"1\""])
    #expect(try await end == nil)
    #expect(body.source.trailers?[.eTag] == "\"1\"")
    #expect(try await late.collect() == Data("one two".utf8))
  }

  @Test("the readers of an aborted or released writer fail", arguments: [true, false])
  func abort(isReleased: Bool) async throws {
    var writer: CollectingWriter? = writer()
    let body = try #require(try writer?.reader())
    async let error = failure { () throws(CacheError) in _ = try await body.collect() }
    if let writer { await readerWaits(writer) }
    if !isReleased { writer?.abort() }
    writer = nil
    #expect(await error?.code == .truncatedBody)
    #expect(published.all.isEmpty)
  }

  @Test("a commit that cannot be published fails, and so do the readers")
  func failedCommit() async throws {
    let writer = writer(failingWith: CacheError(.diskFull, reason: "no space left"))
    let body = try writer.reader()
    async let error = failure { () throws(CacheError) in _ = try await body.collect() }
    await readerWaits(writer)
    #expect(await failure { () throws(CacheError) in _ = try await writer.commit(trailers: nil) }?.code == .diskFull)
    #expect(await error?.code == .diskFull)
  }

  @Test("a writer accepts no bytes after its end", arguments: [true, false])
  func misuse(isCommitted: Bool) async throws {
    let writer = writer()
    if isCommitted { _ = try await writer.commit(trailers: nil) } else { writer.abort() }
    writer.abort()
    #expect(await failure { () throws(CacheError) in try await writer.write(Data("x".utf8)) }?.code == .misuse)
    let late = try writer.reader()
    #expect(await failure { () throws(CacheError) in _ = try await late.collect() }?.code == (isCommitted ? nil : .truncatedBody))
    #expect(await failure { () throws(CacheError) in _ = try await writer.commit(trailers: nil) }?.code == .misuse)
    #expect(published.all.count == (isCommitted ? 1 : 0))
  }

  @Test("a waiting reader resumes when it or its task is cancelled", arguments: [true, false])
  func cancellation(isTask: Bool) async throws {
    let writer = writer()
    let body = try writer.reader()
    let task = Task { await failure { () throws(CacheError) in _ = try await body.source.next() } }
    await readerWaits(writer)
    if isTask { task.cancel() } else { body.source.cancel() }
    #expect(await task.value?.isCancellation == true)
    try await writer.write(Data("x".utf8))
    _ = try await writer.commit(trailers: nil)
  }

  @Test("a body up to the size limit is published, and a larger one is refused")
  func sizeLimit() async throws {
    let writer = writer(sizeLimit: 5)
    try await writer.write(Data("12345".utf8))
    #expect(await failure { () throws(CacheError) in try await writer.write(Data("6".utf8)) }?.code == .entryTooLarge)
    // The refused bytes are not part of the body.
    #expect(try await writer.commit(trailers: nil).bodyLength == 5)
    #expect(published.all.map(\.body) == [Data("12345".utf8)])
  }

  @Test("a reader that has fallen behind receives the body in pieces")
  func pieces() async throws {
    let writer = writer()
    let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
    try await writer.write(bytes)
    let body = try writer.reader()
    _ = try await writer.commit(trailers: nil)
    var (pieces, collected) = (0, Data())
    while let piece = try await body.source.next() {
      pieces += 1
      #expect(piece.count <= 65_536)
      collected.append(piece)
    }
    #expect(collected == bytes && pieces == 4)
  }
}
