#if AsyncHTTP
@testable import AsyncHTTPNetworking
import AsyncHTTPClient
import CacheCore
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Testing

@Suite("Mapping of async-http-client and SwiftNIO errors")
struct ErrorTests {
  static let table: [(any Error, CacheError.Code)] = [
    (HTTPClientError.cancelled, .cancelled),
    (CancellationError(), .cancelled),
    (HTTPClientError.alreadyShutdown, .closed),
    (HTTPClientError.remoteConnectionClosed, .connectionLost),
    (HTTPClientError.connectTimeout, .timedOut),
    (HTTPClientError.tlsHandshakeTimeout, .timedOut),
    (HTTPClientError.getConnectionFromPoolTimeout, .timedOut),
    (HTTPClientError.readTimeout, .timedOut),
    (HTTPClientError.deadlineExceeded, .timedOut),
    (HTTPClientError.invalidProxyResponse, .proxyFailure),
    (HTTPClientError.proxyAuthenticationRequired, .proxyFailure),
    (HTTPClientError.socksHandshakeTimeout, .proxyFailure),
    (HTTPClientError.invalidURL, .invalidURL),
    (HTTPClientError.bodyLengthMismatch, .misuse),
    (HTTPClientError.redirectLimitReached, .tooManyRedirects),
    (HTTPClientError.invalidLocalAddress, .other),
    (IOError(errnoCode: ECONNREFUSED, reason: "connect"), .connectionRefused),
    (IOError(errnoCode: ECONNRESET, reason: "read"), .connectionLost),
    (IOError(errnoCode: EPIPE, reason: "write"), .connectionLost),
    (IOError(errnoCode: ETIMEDOUT, reason: "connect"), .timedOut),
    (IOError(errnoCode: ENETUNREACH, reason: "connect"), .offline),
    (IOError(errnoCode: EMFILE, reason: "socket"), .other),
    (ChannelError.connectTimeout(.seconds(1)), .timedOut),
    (ChannelError.eof, .connectionLost),
    (ChannelError.operationUnsupported, .other),
    (HTTPParserError.invalidEOFState, .connectionLost),
    (HTTPParserError.invalidHeaderToken, .malformedResponse),
    (HTTPParserError.headerOverflow, .malformedResponse),
    (NIOSSLExtraError.failedToValidateHostname, .tlsFailure),
    (NIOSSLError.unableToValidateCertificate, .tlsFailure),
  ]

  @Test("an error has a code of this package, one sentence, and the original error", arguments: table)
  func meaning(_ error: any Error, code: CacheError.Code) {
    let told = CacheError(clientError: error)
    #expect(told.code == code)
    #expect(!told.reason.isEmpty && !told.reason.contains("\n"))
    #expect(told.underlying != nil)
    #expect(told.errno == (error as? IOError)?.errnoCode)
  }

  @Test("a connection lost after the head is a truncated body")
  func cut() {
    let progress = TransferState.Progress(hasHead: true, received: 5, expected: 9)
    for error in [HTTPClientError.remoteConnectionClosed, HTTPParserError.invalidEOFState, ChannelError.eof] as [any Error] {
      let told = CacheError(clientError: error, after: progress)
      #expect(told.code == .truncatedBody)
      #expect(told.reason == "the body ended after 5 of 9 bytes")
    }
  }

  @Test("an error of this package is passed on unchanged")
  func own() {
    let own = CacheError(.addressRefused, reason: "no")
    #expect(CacheError(clientError: own).code == .addressRefused)
  }
}
#endif
