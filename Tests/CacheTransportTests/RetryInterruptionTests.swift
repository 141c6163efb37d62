import CacheCore
import CacheTesting
import CacheTransport
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Retries after the head")
struct RetryInterruptionTests {
  private let bytes = pattern(10_000)

  private func failing(
    _ fields: HTTPFields = [:], cut: Int, then: @escaping @Sendable (Int) -> DownloadResponse
  ) -> RequestProbe {
    RequestProbe { [bytes] number, _ in number == 1 ? .scripted(200, fields, bytes, cut: cut, error: lost) : then(number) }
  }

  @Test("a body that breaks before its first byte is asked for again, and nobody sees it")
  func transparent() async throws {
    let probe = failing([.eTag: #"W/"1""#], cut: 0) { [bytes] number in
      .scripted(200, [.eTag: #"W/"1""#], bytes, cut: number == 2 ? 0 : nil)
    }
    let response = try await probe.retrying(.eager()).download(request())
    #expect(try await response.body.collect() == bytes)
    #expect(probe.received.map(\.attempt) == [1, 2, 3])
    #expect(probe.received.allSatisfy { $0.head.headerFields[.range] == nil })
    #expect(response.metrics().attempts == 3)
    #expect(response.metrics().bytesDecoded == 10_000)
  }

  @Test("but not under a head that does not describe it")
  func otherHead() async throws {
    let others: [@Sendable () -> DownloadResponse] = [
      { [bytes] in .scripted(200, [.eTag: #""2""#], bytes) },
      { [bytes] in .scripted(200, [.eTag: #""1""#, .cacheControl: "no-store"], bytes) },
      { .scripted(200, [.eTag: #""1""#], pattern(9_000)) }, { [bytes] in .scripted(404, [.eTag: #""1""#], bytes) },
    ]
    for other in others {
      let probe = failing([.eTag: #""1""#], cut: 0) { _ in other() }
      let response = try await probe.retrying(.eager()).download(request())
      let error = await failure { _ = try await response.body.collect() }
      #expect(error?.code == .bodyInterrupted)
      #expect(error?.attempt == 2)
    }
  }

  @Test("a server that does not want to be asked again is not, whatever broke before", arguments: [0, 1_000], [false, true])
  func wantsPeace(_ cut: Int, _ resumes: Bool) async throws {
    let probe = failing([.eTag: #""1""#], cut: cut) { _ in .scripted(503, [.retryAfter: "3600"]) }
    let downloader: any Downloader = resumes ? probe.resuming(.eager()).retrying(.eager()) : probe.retrying(.eager())
    let response = try await downloader.download(request())
    let error = await failure { _ = try await response.body.collect() }
    // Without resumption nothing more is asked for once bytes were handed over: nobody has heard of the 503.
    let hasAsked = resumes || cut == 0
    #expect(error?.code == (hasAsked ? .unacceptableStatus : .bodyInterrupted))
    #expect(error?.status == (hasAsked ? 503 : nil))
    #expect(probe.count == (hasAsked ? 2 : 1))
  }

  @Test("a body that breaks later is an invitation to start over, as long as the policy has a request to give", arguments: 1...4)
  func interrupted(_ attempt: Int) async throws {
    let probe = failing(cut: 1_000) { _ in .scripted() }
    let response = try await probe.retrying(.eager(4)).download(request(attempt: attempt))
    let error = await failure { _ = try await response.body.collect() }
    #expect(error?.code == (attempt < 4 ? .bodyInterrupted : .connectionLost))
    #expect(error?.attempt == attempt)
    if attempt < 4 { #expect((error?.underlying as? CacheError)?.code == .connectionLost) }
    #expect(probe.count == 1)
  }

  @Test("an error that no retry would mend stays what it is")
  func notWorthIt() async throws {
    let probe = RequestProbe { [bytes] _, _ in
      .scripted(200, [:], bytes, cut: 1_000, error: CacheError(.bodyTooLarge, reason: "too large"))
    }
    let response = try await probe.retrying(.eager()).download(request())
    #expect(await failure { _ = try await response.body.collect() }?.code == .bodyTooLarge)
  }

  @Test("an answer to POST that breaks is told as it is")
  func post() async throws {
    let probe = failing(cut: 1_000) { _ in .scripted() }
    let response = try await probe.retrying(.eager()).download(request(method: .post))
    #expect(await failure { _ = try await response.body.collect() }?.code == .connectionLost)
  }

  @Test("around resumption, the attempts are one budget: whoever starts over comes to an end")
  func oneBudget() async throws {
    // Changes with every request, and breaks each time.
    let probe = RequestProbe { [bytes] number, _ in .scripted(200, [.eTag: "\"\(number)\""], bytes, cut: 1_000, error: lost) }
    let downloader = probe.resuming(.eager(5)).retrying(.eager(5))
    var attempt = 1
    var last: CacheError?
    while attempt < 20 {
      let response = try await downloader.download(request(attempt: attempt))
      last = await failure { _ = try await response.body.collect() }
      guard let error = last, error.code == .bodyInterrupted else { break }
      attempt = (error.attempt ?? 0) + 1
    }
    #expect(last?.code == .connectionLost)
    #expect(last?.attempt == 5)
    #expect(probe.received.map(\.attempt) == [1, 2, 3, 4, 5])
  }

  @Test("in either order with resumption, a body goes on", arguments: [false, true])
  func order(_ isResumptionOutside: Bool) async throws {
    let probe = RequestProbe { [bytes] number, _ throws(CacheError) in
      switch number {
      case 1, 3: throw lost
      case 2: return .scripted(200, [.eTag: #""1""#], bytes, cut: 1_000, error: lost)
      default: return .scripted(206, [.eTag: #""1""#, .contentRange: "bytes 1000-9999/10000"], bytes.dropFirst(1_000))
      }
    }
    let downloader: any Downloader =
      isResumptionOutside ? probe.retrying(.eager()).resuming(.eager()) : probe.resuming(.eager()).retrying(.eager())
    let response = try await downloader.download(request())
    #expect(try await response.body.collect() == bytes)
    #expect(probe.received.map(\.attempt) == [1, 2, 3, 4])
    #expect(response.metrics().attempts == 4)
    #expect(response.metrics().bytesOnWire == 10_000)
  }

  @Test("bodies that can't break are passed as they are")
  func untouched() async throws {
    let probe = RequestProbe { _, _ in DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(pattern(5))) }
    let response = try await probe.resuming().retrying().download(request())
    #expect(response.body.data == pattern(5))
  }
}
