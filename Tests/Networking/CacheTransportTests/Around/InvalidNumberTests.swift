import CacheCore
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("Numbers out of range in downloaders")
struct InvalidNumberTests {
  struct Example: CustomTestStringConvertible, Sendable {
    let setting: String
    let value: String
    let wrap: @Sendable (ScriptedDownloader) -> any Downloader

    init(_ setting: String, _ value: String, _ wrap: @escaping @Sendable (ScriptedDownloader) -> any Downloader) {
      (self.setting, self.value, self.wrap) = (setting, value, wrap)
    }

    static func retry(_ setting: String, _ value: String, _ change: @escaping @Sendable (inout RetryPolicy) -> Void) -> [Self] {
      let policy: @Sendable () -> RetryPolicy = {
        var policy = RetryPolicy.brief
        change(&policy)
        return policy
      }
      return [Self(setting, value) { $0.retrying(policy()) }, Self(setting, value) { $0.resuming(policy()) }]
    }

    var testDescription: String { "\(setting) \(value)" }
  }

  static let examples: [Example] =
    [
      Example("total", "0") { $0.limitingConcurrency(TransferLimits(total: 0)) },
      Example("total", "-5") { $0.limitingConcurrency(TransferLimits(total: -5)) },
      Example("perHost", "0") { $0.limitingConcurrency(TransferLimits(perHost: 0)) },
      Example("maximumWaiting", "-1") { $0.limitingConcurrency(TransferLimits(maximumWaiting: -1)) },
      Example("perSecond", "0.0") { $0.rateLimited(perSecond: 0) },
      Example("perSecond", "-1.0") { $0.rateLimited(perSecond: -1) },
      Example("perSecond", "nan") { $0.rateLimited(perSecond: .nan) },
      Example("perSecond", "inf") { $0.rateLimited(perSecond: .infinity) },
      Example("burst", "0") { $0.rateLimited(perSecond: 1, burst: 0) },
      Example("burst", "\(Int.max)") { $0.rateLimited(perSecond: 1, burst: .max) },
      Example("limit", "-1") { $0.limitingBodies(to: -1) },
      Example("timeout", "0.0 seconds") { $0.restrictingAddresses(to: .publicOnly, timeout: .zero) },
      Example("freshFor", "-1.0 seconds") { _ in ClosureDownloader(freshFor: .seconds(-1)) { _ in Data() } },
    ] + decoding
    + Example.retry("maximumAttempts", "0") { $0.maximumAttempts = 0 }
    + Example.retry("base", "-1.0 seconds") { $0.backoff.base = .seconds(-1) }
    + Example.retry("cap", "-1.0 seconds") { $0.backoff.cap = .seconds(-1) }
    + Example.retry("multiplier", "0.5") { $0.backoff.multiplier = 0.5 }
    + Example.retry("multiplier", "nan") { $0.backoff.multiplier = .nan }
    + Example.retry("timeLimit", "-1.0 seconds") { $0.timeLimit = .seconds(-1) }
    + Example.retry("maximumRetryAfter", "-1.0 seconds") { $0.maximumRetryAfter = .seconds(-1) }
    + Example.retry("networkWaitLimit", "-1.0 seconds") { $0.networkWaitLimit = .seconds(-1) }

  #if ContentDecoding
  static let decoding = [
    Example("limit", "-1") { $0.decoding(limit: -1) }, Example("ratio", "0") { $0.decoding(ratio: 0) },
    Example("codings", "0") { $0.decoding(codings: 0) },
  ]
  #else
  static let decoding: [Example] = []
  #endif

  @Test("a number out of range fails each request and names the setting and its value", arguments: examples)
  func refused(_ example: Example) async throws {
    let network = ScriptedDownloader()
    let downloader = example.wrap(network)
    let request = DownloadRequest(head: try HTTPRequest(resource: TestRequest.url("https://e.com/a")))
    for _ in 0..<2 {
      let error = await failure { _ = try await downloader.download(request) }
      #expect(error?.code == .invalidConfiguration)
      #expect(error?.reason.contains("'\(example.setting)'") == true, "\(error?.reason ?? "")")
      #expect(error?.reason.hasSuffix("not \(example.value)") == true, "\(error?.reason ?? "")")
    }
    #expect(network.requests.isEmpty)
  }

  @Test("a limit of zero bytes and of zero waiting requests is valid")
  func zero() async throws {
    let network = ScriptedDownloader()
    let url = try TestRequest.url("https://e.com/a")
    network.respond(to: url, with: .response(.noContent))
    let downloader = network.limitingBodies(to: 0).limitingConcurrency(TransferLimits(maximumWaiting: 0))
    let response = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url)))
    #expect(try await response.body.collect(limit: 0).isEmpty)
    #expect(await failure { _ = try await response.body.collect(limit: -1) }?.code == .invalidConfiguration)
  }
}
