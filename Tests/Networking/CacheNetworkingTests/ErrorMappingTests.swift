import CacheCore
import Foundation
import Testing

@testable import CacheNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Mapping of URLSession errors") struct ErrorMappingTests {
  @Test(
    "each kind of failure has its own code",
    arguments: [
      (URLError.Code.cancelled, CacheError.Code.cancelled), (.cannotFindHost, .hostNotFound), (.dnsLookupFailed, .hostNotFound),
      (.cannotConnectToHost, .connectionRefused), (.networkConnectionLost, .connectionLost), (.timedOut, .timedOut),
      (.notConnectedToInternet, .offline), (.cannotParseResponse, .malformedResponse), (.badURL, .invalidURL),
      (.secureConnectionFailed, .tlsFailure), (.serverCertificateUntrusted, .tlsFailure),
      (.serverCertificateHasBadDate, .tlsFailure), (.serverCertificateHasUnknownRoot, .tlsFailure),
      (.clientCertificateRejected, .tlsFailure), (.dataLengthExceedsMaximum, .bodyTooLarge), (.cannotCreateFile, .other),
    ])
  func codes(platform: URLError.Code, expected: CacheError.Code) {
    let error = CacheError(urlError: URLError(platform))

    #expect(error.code == expected)
    #expect((error.underlying as? URLError)?.code == platform)
    #expect(!error.reason.isEmpty)
  }

  @Test(
    "on Linux the error text distinguishes failures with the same code",
    arguments: [
      ("transfer closed with 495 bytes remaining to read", CacheError.Code.truncatedBody),
      ("Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server", .connectionRefused),
      ("Recv failure: Connection reset by peer", .connectionLost),
      ("SSL certificate problem: self-signed certificate", .tlsFailure),
      ("Error while processing content unencoding: incorrect header check", .damagedContentCoding),
      ("Failed writing header", .malformedResponse),
      ("Could not resolve proxy: nowhere", .proxyFailure), ("CONNECT tunnel failed, response 502", .proxyFailure),
      ("something new", .other),
    ])
  func unknown(text: String, expected: CacheError.Code) {
    let platform = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: text])

    #expect(CacheError(urlError: platform).code == expected)
  }

  #if canImport(FoundationNetworking)
  @Test(
    "on Linux the error of an IPv6 literal names the limit of URLSession and does not blame the URL",
    arguments: [("http://[::1]:80/", true), ("https://[fe80::1%25eth0]/", true), ("http://example.com/a:b", false)])
  func addressLiteral(_ text: String, isLimit: Bool) throws {
    let platform = URLError(.badURL, userInfo: [NSURLErrorFailingURLErrorKey: try #require(URL(string: text))])

    let error = CacheError(urlError: platform)

    #expect(error.code == (isLimit ? .unsupported : .invalidURL))
    #expect(error.reason.contains("URLSession on Linux cannot load IPv6 literal hosts") == isLimit)
    #expect((error.underlying as? URLError)?.code == .badURL)
  }
  #endif

  @Test("an unknown error after the head is a truncated body with both numbers")
  func truncated() {
    let platform = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "something new"])

    let error = CacheError(completion: platform, hasHead: true, received: 5, expected: 500)

    #expect(error.code == .truncatedBody)
    #expect(error.reason.contains("5 of 500"))
  }

  @Test(
    "the platform gets whole seconds, rounded up and never zero",
    arguments: [
      (Duration.zero, 1), (.milliseconds(500), 1), (.seconds(1), 1), (.milliseconds(1001), 2), (.seconds(60), 60),
      (.seconds(Int64.max), 31_536_000), (.seconds(-5), 1),
    ] as [(Duration, Int64)])
  func seconds(duration: Duration, expected: Int64) {
    #expect(SessionDownloader.Configuration.wholeSeconds(duration) == expected)
  }
}
