#if Redis && Origin && Service && SQLite
import AsyncHTTPNetworking
import CacheCore
import CacheManager
import DiskStore
import ETagValidation
import Foundation
import HTTPServing
import HTTPTypes
import Logging
import MemoryStore
import NIOCore
import ServiceLifecycle
import UnixSignals

/// A process with a caching reverse proxy: `HTTPListener` in front of a manager with a memory store and a disk. It is the core of
/// `Examples/Gateway`, whose package the trials cannot depend on.
struct SoakGateway: Sendable {
  private let member: SoakMember
  private let counts: SharedCounts
  private let engine: AsyncHTTPDownloader
  private let disk: DiskCache
  private let manager: ResourceManager
  private let faulty = Faulty()

  init(arguments: ArraySlice<String>) throws {
    let words = Array(arguments)
    guard words.count == 3, let member = Int(words[0]).flatMap({ SoakMember(rawValue: $0) }), let port = Int(words[1]) else {
      throw FailedCheck("'soak-gateway' needs a member, a port and a folder")
    }
    self.member = member
    counts = try SharedCounts(path: "\(words[2])/counts")
    let clock = SoakClock(counts: counts, member: member)
    engine = try AsyncHTTPDownloader(
      configuration: .init {
        $0.connectionsPerHost = 8
        $0.idleTimeout = .seconds(5)
      })
    disk = try DiskCache(
      path: "\(words[2])/\(member.name)/disk", configuration: .init(sizeLimit: 24_000_000, clock: clock), calls: faulty.calls)
    var configuration = ResourceManager.Configuration()
    configuration.downloader = SoakDownloader(engine: engine, port: port)
    configuration.memory = MemoryCache(limits: .init(cost: 8_000_000), clock: clock)
    configuration.store = disk
    configuration.clock = clock
    configuration.collapseTimeout = SoakLog.collapseTimeout
    configuration.validator = ETagValidator(mode: .shared, parts: .completed)
    manager = ResourceManager(configuration)
  }

  func run() async throws {
    signal(SIGXFSZ, SIG_IGN)
    let (counts, faulty, member) = (counts, faulty, member)
    SoakLog.watch([], RunningTime(), parent: getppid()) { counts.apply(to: faulty, member) }
    let listener = HTTPListener(
      HostAndPort(host: "127.0.0.1", port: 0), CachingProxy(manager: manager),
      onRunning: { Children.tell("ready \($0.port)") })
    try await ServiceGroup(
      services: [engine, listener], gracefulShutdownSignals: [.sigterm], cancellationSignals: [],
      logger: Logger(label: "gateway") { _ in SwiftLogNoOpLogHandler() }
    ).run()
    await manager.close()
    let report = try await disk.verify()
    if !report.isClean { Children.tell("failed wrong: \(member.name), the disk at the end: \(report)") }
    await disk.close()
    Children.tell("done")
  }
}

/// A responder that is an HTTP cache, with the method PURGE.
private struct CachingProxy: HTTPResponder {
  let manager: ResourceManager

  func respond(to request: ServerRequest) async -> ServerResponse {
    var head = request.head
    head.headerFields = head.headerFields.endToEnd()
    do throws(CacheError) {
      if head.method.rawValue == "PURGE" {
        guard let url = head.absoluteURL else { throw CacheError(.invalidURL, reason: "invalid target") }
        let count = try await manager.purge(.url(url))
        return text(count > 0 ? .ok : .notFound, "\(count) purged")
      }
      let answer = try await manager.respond(to: head, body: request.body)
      var response = ServerResponse(head: answer.head, body: answer.body)
      response.head.headerFields = response.head.headerFields.endToEnd()
      response.onFailure = { text($0.responseStatus, "\($0)") }
      return response
    } catch {
      return text(error.responseStatus, "\(error)")
    }
  }

  func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse { text(refusal.status, refusal.reason) }

  private func text(_ status: HTTPResponse.Status, _ text: String) -> ServerResponse {
    ServerResponse(head: HTTPResponse(status: status), body: ResourceBody(Data("\(text)\n".utf8)))
  }
}
#endif
