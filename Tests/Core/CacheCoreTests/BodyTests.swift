import CacheCore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("A body")
struct BodyTests {
  @Test("a body in memory has a length and a single chunk, which is read once")
  func atHand() async throws {
    let body = ResourceBody(Data("abc".utf8))
    #expect(body.length == 3)
    #expect(body.data == Data("abc".utf8))
    #expect(body.source.trailers == nil)

    var chunks: [Data] = []
    for try await chunk in body { chunks.append(chunk) }
    #expect(chunks == [Data("abc".utf8)])

    var again = body.makeAsyncIterator()
    #expect(try await again.next() == nil)
  }

  @Test("an empty body has no chunks")
  func empty() async throws {
    var iterator = ResourceBody(Data()).makeAsyncIterator()
    #expect(try await iterator.next() == nil)
    #expect(try await ResourceBody(Data()).collect().isEmpty)
    #expect(try await ResourceBody(length: nil, source: ChunkSource([])).collect().isEmpty)
  }

  @Test(
    "a body is collected completely, with any announced length", arguments: [nil, 6, 1, 1 << 40, .max] as [Int64?])
  func collects(_ length: Int64?) async throws {
    let source = ChunkSource(["ab", "cd", "ef"])
    let body = ResourceBody(length: length, source: source)
    #expect(body.data == nil)
    #expect(try await body.collect() == Data("abcdef".utf8))
    #expect(source.pulls == 4)
    #expect(!source.isCancelled)
  }

  @Test("a streamed body can be read only once")
  func singleUse() async throws {
    let body = ResourceBody(length: nil, source: ChunkSource(["ab"]))
    #expect(try await body.collect() == Data("ab".utf8))
    #expect(try await body.collect().isEmpty)
  }

  @Test("a body with an announced length above the limit is cancelled before the first read")
  func announcedTooLarge() async {
    let source = ChunkSource(["abcdef"])
    let error = await failure { _ = try await ResourceBody(length: 6, source: source).collect(limit: 5) }
    #expect(error?.code == .bodyTooLarge)
    #expect(source.pulls == 0)
    #expect(source.isCancelled)
  }

  @Test("a body that grows beyond the limit is cancelled", arguments: [["abcdef"], ["ab", "cd", "ef"], ["abcde", "f"]])
  func growsTooLarge(_ chunks: [String]) async {
    let source = ChunkSource(chunks)
    let error = await failure { _ = try await ResourceBody(length: nil, source: source).collect(limit: 5) }
    #expect(error?.code == .bodyTooLarge)
    #expect(error?.description.contains("5 bytes") == true)
    #expect(source.isCancelled)
  }

  @Test("a body of exactly the limit is accepted")
  func exactLimit() async throws {
    #expect(try await ResourceBody(length: nil, source: ChunkSource(["ab", "cd"])).collect(limit: 4).count == 4)
    #expect(try await ResourceBody(Data("abcd".utf8)).collect(limit: 4).count == 4)
    #expect(await failure { _ = try await ResourceBody(Data("abcd".utf8)).collect(limit: 3) }?.code == .bodyTooLarge)
  }

  @Test("a cancelled body throws a cancellation at the next read")
  func cancelled() async throws {
    let atHand = ResourceBody(Data("abc".utf8))
    atHand.source.cancel()
    var iterator = atHand.makeAsyncIterator()
    await #expect(throws: CacheError.self) { _ = try await iterator.next() }

    let stream = ResourceBody(length: nil, source: ChunkSource(["ab", "cd"]))
    var chunks = stream.makeAsyncIterator()
    #expect(try await chunks.next() == Data("ab".utf8))
    stream.source.cancel()
    #expect(await failure { _ = try await stream.collect() }?.isCancellation == true)
  }
}
