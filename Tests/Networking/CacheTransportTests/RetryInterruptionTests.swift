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

  @Test("a body that fails before its first byte is requested again without an error")
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

  @Test("a body of unknown length is replaced by one that arrives whole")
  func whole() async throws {
    let probe = RequestProbe { number, _ in
      guard number == 1 else { return DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data("abc".utf8))) }
      return .scripted(200, [:], BreakingBody(Data("abc".utf8), breaks: (0, lost)), length: nil)
    }
    var request = request()
    request.collectUpTo = 100
    let response = try await probe.retrying(.eager(2)).download(request)
    #expect(response.body.length == nil)
    #expect(try await response.body.collect() == Data("abc".utf8))
    #expect(response.metrics().attempts == 2)
  }

  @Test("a new response is not used if its head does not describe the same content")
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

  @Test("a 503 with a long Retry-After ends the recovery of a failed body", arguments: [0, 1_000], [false, true])
  func longRetryAfter(_ cut: Int, _ resumes: Bool) async throws {
    let probe = failing([.eTag: #""1""#], cut: cut) { _ in .scripted(503, [.retryAfter: "3600"]) }
    let downloader: any Downloader = resumes ? probe.resuming(.eager()).retrying(.eager()) : probe.retrying(.eager())
    let response = try await downloader.download(request())
    let error = await failure { _ = try await response.body.collect() }
    // Without resumption no request is sent after bytes were returned, so the 503 is unknown.
    let hasSent = resumes || cut == 0
    #expect(error?.code == (hasSent ? .unacceptableStatus : .bodyInterrupted))
    #expect(error?.status == (hasSent ? 503 : nil))
    #expect(probe.count == (hasSent ? 2 : 1))
  }

  @Test("a body that fails later throws bodyInterrupted as long as the policy has an attempt left", arguments: 1...4)
  func interrupted(_ attempt: Int) async throws {
    let probe = failing(cut: 1_000) { _ in .scripted() }
    let response = try await probe.retrying(.eager(4)).download(request(attempt: attempt))
    let error = await failure { _ = try await response.body.collect() }
    #expect(error?.code == (attempt < 4 ? .bodyInterrupted : .connectionLost))
    #expect(error?.attempt == attempt)
    if attempt < 4 { #expect((error?.underlying as? CacheError)?.code == .connectionLost) }
    #expect(probe.count == 1)
  }

  @Test("an error that is not retried stays unchanged")
  func notWorthIt() async throws {
    let probe = RequestProbe { [bytes] _, _ in
      .scripted(200, [:], bytes, cut: 1_000, error: CacheError(.bodyTooLarge, reason: "too large"))
    }
    let response = try await probe.retrying(.eager()).download(request())
    #expect(await failure { _ = try await response.body.collect() }?.code == .bodyTooLarge)
  }

  @Test("a failed response to POST keeps its own error")
  func post() async throws {
    let probe = failing(cut: 1_000) { _ in .scripted() }
    let response = try await probe.retrying(.eager()).download(request(method: .post))
    #expect(await failure { _ = try await response.body.collect() }?.code == .connectionLost)
  }

  @Test("retries around resumption share one budget, so that starting over ends")
  func oneBudget() async throws {
    // The resource changes with every request, and each body fails.
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

  @Test("retries and resumption work in either order", arguments: [false, true])
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

  @Test("a body in memory is passed on unchanged")
  func untouched() async throws {
    let probe = RequestProbe { _, _ in DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(pattern(5))) }
    let response = try await probe.resuming().retrying().download(request())
    #expect(response.body.data == pattern(5))
  }
}
