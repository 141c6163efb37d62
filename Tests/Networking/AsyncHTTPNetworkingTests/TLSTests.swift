#if AsyncHTTP
import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes
import Testing

/// nginx with TLS and HTTP/2, started by `Scripts/test --interop`, with certificates of a temporary authority. Its `/who`
/// responds with the protocol, and with the client's name in `X-Client`.
private struct SecureServer {
  let address: String
  let certificates: String

  static let shared: SecureServer? = {
    let environment = ProcessInfo.processInfo.environment
    guard let address = environment["ETAGERE_INTEROP_TLS_ORIGIN"], let folder = environment["ETAGERE_INTEROP_CERTIFICATES"]
    else { return nil }
    return SecureServer(address: address, certificates: folder)
  }()

  var authority: AsyncHTTPDownloader.TLS.PEM { .file(certificates + "/ca.pem") }

  func url(_ path: String) throws -> URL { try #require(URL(string: address + path)) }

  /// Downloads the path with this configuration.
  func load(
    _ path: String, body: ResourceBody? = nil, _ change: (inout AsyncHTTPDownloader.Configuration) -> Void
  ) async throws -> (DownloadResponse, Data) {
    let downloader = try Fixture.downloader(.init(change))
    let head = try HTTPRequest(resource: url(path), method: body == nil ? .get : .post)
    let result: Result<(DownloadResponse, Data), CacheError>
    do throws(CacheError) {
      let response = try await downloader.download(DownloadRequest(head: head, body: body))
      result = .success((response, try await response.body.collect()))
    } catch {
      result = .failure(error)
    }
    await downloader.close()
    return try result.get()
  }
}

@Suite("async-http-client with TLS and nginx", .enabled(if: SecureServer.shared != nil), .timeLimit(.minutes(30)))
struct TLSTests {
  private let server: SecureServer

  init() throws { server = try #require(SecureServer.shared) }

  @Test("a server with an unknown authority is refused")
  func unknownAuthority() async throws {
    do {
      _ = try await server.load("/who") { _ in }
      Issue.record("the server was accepted")
    } catch let error as CacheError {
      #expect(error.code == .tlsFailure)
    }
  }

  @Test("a server whose authority is among the roots is accepted, over HTTP/2 if it is allowed", arguments: [true, false])
  func version(isAutomatic: Bool) async throws {
    let (response, body) = try await server.load("/who") {
      $0.tls.additionalRoots = [server.authority]
      $0.allowsHTTP2 = isAutomatic
    }
    #expect(String(decoding: body, as: UTF8.self) == (isAutomatic ? "HTTP/2.0" : "HTTP/1.1"))
    #expect(response.metrics().protocolName == (isAutomatic ? "h2" : "http/1.1"))
  }

  @Test("certificates can be given as bytes")
  func bytes() async throws {
    let pem = try Data(contentsOf: URL(filePath: server.certificates + "/ca.pem"))
    let (response, _) = try await server.load("/who") { $0.tls.additionalRoots = [.bytes(Array(pem))] }
    #expect(response.head.status == .ok)
  }

  @Test("a trusted host needs no authority, but another name of it does")
  func trustedHost() async throws {
    let (response, _) = try await server.load("/who") { $0.tls.trustedHosts = ["localhost"] }
    #expect(response.head.status == .ok)
    await #expect(throws: CacheError.self) { _ = try await server.load("/who") { $0.tls.trustedHosts = ["127.0.0.1"] } }
  }

  @Test("a client certificate identifies the client to the server")
  func identity() async throws {
    let (stranger, _) = try await server.load("/members") { $0.tls.additionalRoots = [server.authority] }
    #expect(stranger.head.status == .forbidden)
    let (member, body) = try await server.load("/members") {
      $0.tls.additionalRoots = [server.authority]
      $0.tls.certificateChain = .file(server.certificates + "/client.pem")
      $0.tls.privateKey = .file(server.certificates + "/client.key")
    }
    #expect(member.head.status == .ok)
    #expect(body == Data("member".utf8))
  }

  @Test("many requests share one HTTP/2 connection, and cancelled ones do not affect the others")
  func multiplexing() async throws {
    let downloader = try AsyncHTTPDownloader(
      configuration: .init {
        $0.tls.additionalRoots = [server.authority]
        $0.connectionsPerHost = 2
      })
    let request = DownloadRequest(head: try HTTPRequest(resource: server.url("/who")))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<300 {
        group.addTask {
          let task = Task { try await downloader.download(request).body.collect() }
          if index % 7 == 0 {
            task.cancel()
            _ = try? await task.value
          } else {
            let body = try await task.value
            #expect(body == Data("HTTP/2.0".utf8))
          }
        }
      }
      try await group.waitForAll()
    }
    await downloader.close()
  }

  @Test("a request with a body uses HTTP/1.1, even if HTTP/2 is allowed", arguments: [true, false])
  func upload(isKnown: Bool) async throws {
    let piece = Data(repeating: 1, count: 50_000)
    let body = ResourceBody(length: isKnown ? 100_000 : nil, source: Pieces([piece, piece]))
    let (_, result) = try await server.load("/who", body: body) { $0.tls.additionalRoots = [server.authority] }
    #expect(String(decoding: result, as: UTF8.self) == "HTTP/1.1")
  }

  @Test("a refused peer is also refused with TLS and HTTP/2")
  func refusedPeer() async throws {
    do {
      _ = try await server.load("/who") {
        $0.tls.additionalRoots = [server.authority]
        $0.addressPolicy = .publicOnly
      }
      Issue.record("the peer was accepted")
    } catch let error as CacheError {
      #expect(error.code == .addressRefused)
    }
  }
}

@Suite("Certificates of a downloader on async-http-client")
struct CertificateTests {
  @Test("a file that is missing or contains no certificate is an invalid configuration with the file's path")
  func unreadable() throws {
    let change: [(inout AsyncHTTPDownloader.Configuration) -> Void] = [
      { $0.tls.additionalRoots = [.file("/nowhere/ca.pem")] },
      { $0.tls.additionalRoots = [.bytes(Array("not a certificate".utf8))] },
      { $0.tls.privateKey = .file("/nowhere/key.pem") },
      {
        $0.tls.certificateChain = .file("/nowhere/chain.pem")
        $0.tls.privateKey = .file("/nowhere/key.pem")
      },
    ]
    for change in change {
      do {
        _ = try AsyncHTTPDownloader(configuration: .init(change))
        Issue.record("the configuration was accepted")
      } catch {
        #expect(error.code == .invalidConfiguration)
      }
    }
  }
}

/// A body of the given chunks.
private final class Pieces: ResourceBody.Source {
  private let pieces: Lock<[Data]>

  init(_ pieces: [Data]) { self.pieces = Lock(pieces) }

  func next() async throws(CacheError) -> Data? { pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() } }

  func cancel() { pieces.withLock { $0 = [] } }

  var trailers: HTTPFields? { nil }
}
#endif
