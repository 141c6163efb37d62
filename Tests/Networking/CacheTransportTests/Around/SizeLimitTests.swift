import CacheCore
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("Body size limits")
struct SizeLimitTests {
  private let network = ScriptedDownloader()
  private let url: URL

  init() throws { url = try TestRequest.url("https://e.com/a") }

  private func ask(_ limit: Int64) async throws -> DownloadResponse {
    try await network.limitingBodies(to: limit).download(DownloadRequest(head: HTTPRequest(resource: url)))
  }

  @Test("a body of the maximum size is passed on", arguments: [true, false])
  func fits(_ statesLength: Bool) async throws {
    network.serve(url) { _ in statesLength ? .ok(pattern(1_000)) : .ok(pattern(1_000)).withoutLength() }
    #expect(try await ask(1_000).body.collect() == pattern(1_000))
    #expect(network.cancelledBodies == 0)
  }

  @Test("an announced length above the limit is refused with both numbers before a byte is read")
  func announced() async throws {
    network.serve(url) { _ in .ok(pattern(1_001)) }
    let error = await failure { _ = try await ask(1_000) }
    #expect(error?.code == .bodyTooLarge)
    #expect(error?.status == 200)
    #expect(error?.reason.contains("1001") == true && error?.reason.contains("1000") == true)
    #expect(network.cancelledBodies == 1)
  }

  @Test("a body that exceeds the limit stops its transfer and returns no more bytes")
  func counted() async throws {
    network.serve(url) { _ in .ok(pattern(5_000)).withoutLength().chunked(by: 600) }
    let response = try await ask(1_000)
    var chunks = response.body.makeAsyncIterator()
    #expect(try await chunks.next()?.count == 600)
    for _ in 0..<2 {
      let error = await failure { _ = try await response.body.source.next() }
      #expect(error?.code == .bodyTooLarge)
      #expect(error?.reason.contains("1200") == true && error?.reason.contains("1000") == true)
    }
    #expect(network.cancelledBodies == 1)
  }

  @Test("downloaders with equal limits and engines are equal")
  func identity() {
    #expect(network.limitingBodies(to: 5).id == network.limitingBodies(to: 5).id)
    #expect(network.limitingBodies(to: 5).id != network.limitingBodies(to: 6).id)
  }
}
