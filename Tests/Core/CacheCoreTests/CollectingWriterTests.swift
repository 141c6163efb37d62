import Foundation
import HTTPTypes
import Testing

@testable import CacheCore

@Suite("The writer that collects a body", .timeLimit(.minutes(30)))
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

  @Test("an aborted or released writer publishes nothing", arguments: [true, false])
  func abort(isReleased: Bool) async throws {
    var writer: CollectingWriter? = writer()
    try await writer?.write(Data("one".utf8))
    if !isReleased { writer?.abort() }
    writer = nil
    #expect(published.all.isEmpty)
  }

  @Test("a commit that cannot be published fails, and ends the entry")
  func failedCommit() async throws {
    let writer = writer(failingWith: CacheError(.diskFull, reason: "no space left"))
    #expect(await failure { () throws(CacheError) in _ = try await writer.commit(trailers: nil) }?.code == .diskFull)
    #expect(await failure { () throws(CacheError) in _ = try await writer.commit(trailers: nil) }?.code == .misuse)
  }

  @Test("a writer accepts no bytes after its end", arguments: [true, false])
  func misuse(isCommitted: Bool) async throws {
    let writer = writer()
    if isCommitted { _ = try await writer.commit(trailers: nil) } else { writer.abort() }
    writer.abort()
    #expect(await failure { () throws(CacheError) in try await writer.write(Data("x".utf8)) }?.code == .misuse)
    #expect(await failure { () throws(CacheError) in _ = try await writer.commit(trailers: nil) }?.code == .misuse)
    #expect(published.all.count == (isCommitted ? 1 : 0))
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
}
