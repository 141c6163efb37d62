#if Redis && Origin && Service && SQLite
import AsyncHTTPNetworking
import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes

/// The clients of a gateway, which send requests, ranges and purges through it and check every response.
struct SoakGatewayClient: Sendable {
  private let log: SoakLog
  private let purges: CompletedPurges
  private let versions: SharedVersions
  private let engine: any Downloader
  /// The port of the gateway, or `nil` while it does not run.
  private let port: SoakPort
  private let isOver: SoakSwitch
  private let clock = SystemClock()

  init(
    _ log: SoakLog, _ purges: CompletedPurges, _ versions: SharedVersions, _ engine: AsyncHTTPDownloader, _ port: SoakPort,
    _ isOver: SoakSwitch
  ) {
    (self.log, self.purges, self.versions, self.engine) = (log, purges, versions, engine.decoding())
    (self.port, self.isOver) = (port, isOver)
  }

  func run(_ generator: SplitMix) async {
    var generator = generator
    while !isOver.isOn {
      try? await clock.sleep(for: .milliseconds(Int64.random(in: 20...180, using: &generator)))
      guard let port = port.value else { continue }
      let numbers =
        switch Int.random(in: 0..<1_000, using: &generator) {
        case 0..<4: VersionedResource.large
        case 4..<300: VersionedResource.hot
        default: VersionedResource.items
        }
      let resource = VersionedResource(numbers.randomElement(using: &generator) ?? 0)
      let choice = Int.random(in: 0..<100, using: &generator)
      if choice < 2 {
        if Bool.random(using: &generator) { versions.advance(resource.number) }
        await purge(resource, port)
        continue
      }
      let language = VersionedResource.languages.randomElement(using: &generator)
      let range = choice < 30 ? SoakRange.random(resource.length(0), &generator) : nil
      let leaves = choice < 34 && choice >= 30 ? Int.random(in: 1...resource.length(0), using: &generator) : nil
      await get(resource, language, range, leavesAfter: leaves, port)
    }
  }

  private func request(_ method: HTTPRequest.Method, _ resource: VersionedResource, _ port: Int) -> HTTPRequest {
    var head = HTTPRequest(method: method, scheme: "http", authority: "127.0.0.1:\(port)", path: resource.url.path())
    // The name stays the same when the gateway gets another port.
    if let host = HTTPField.Name("Host") { head.headerFields[host] = "faults.example" }
    return head
  }

  private func get(
    _ resource: VersionedResource, _ language: String?, _ range: SoakRange?, leavesAfter bytes: Int?, _ port: Int
  ) async {
    let minimum = purges.minimum(resource.number)
    let number = log.begin("a request to \(log.member.name) for \(resource.url) \(range?.field ?? "")")
    defer { log.end(number) }
    var attempt = SoakLog.Attempt(
      name: "a request to \(log.member.name) for \(resource.url) \(range?.field ?? "")", source: .resource(resource.number),
      start: minimum.uptime, writesFiles: true)
    log.count(.loads)
    var received: HTTPResponse?
    do throws(CacheError) {
      var head = request(.get, resource, port)
      head.headerFields[.range] = range?.field
      if resource.varies { head.headerFields[.acceptLanguage] = language }
      let response = try await engine.download(DownloadRequest(head: head))
      received = response.head
      var data = Data()
      while let chunk = try await response.body.source.next() {
        data += chunk
        if let bytes, data.count >= bytes {
          response.body.source.cancel()
          return log.count(.cancelled)
        }
      }
      guard response.head.status.code < 500 else {
        return log.fail(.status, attempt, "status \(response.head.status): \(String(decoding: data.prefix(300), as: UTF8.self))")
      }
      let status = response.head.headerFields[fields: .cacheStatusOfTrials].first?.value ?? ""
      log.count(status.contains(";hit") ? .disk : status.contains("fwd-status=304") ? .revalidated : .network)
      do {
        // The client sees only with a hard purge that a response must not be used.
        try SoakResponse(
          head: response.head, data: data, source: "\(log.member.name)",
          // A stale response that is used because the origin fails has the parameter "fwd".
          isFresh: status.contains(";hit") && !status.contains("fwd=")
        )
        .check(resource, language, range, purges, minimum)
      } catch {
        log.fail(.wrong, "\(error)")
      }
    } catch {
      attempt.lacksRest = received.map { resource.lacksRest($0, resource.varies ? language : nil, versions) } ?? false
      log.fail(error, attempt)
    }
  }

  private func purge(_ resource: VersionedResource, _ port: Int) async {
    guard let method = HTTPRequest.Method("PURGE") else { return }
    let number = log.begin("a purge of \(resource.url) by \(log.member.name)")
    defer { log.end(number) }
    let purge = purges.begin([resource.number])
    do throws(CacheError) {
      let response = try await engine.download(DownloadRequest(head: request(method, resource, port)))
      _ = try await response.body.collect()
      guard response.head.status == .ok || response.head.status == .notFound else { return log.count(.failedPurges) }
      purges.end(purge, .hard)
      log.count(.purges)
    } catch {
      log.count(.failedPurges)
    }
  }
}

/// The port of a server that may be restarted.
final class SoakPort: Sendable {
  private let state = Lock<Int?>(nil)

  var value: Int? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

/// The image service of a member, which may be restarted.
final class RunningService: Sendable {
  private let state = Lock<ZooService?>(nil)

  var value: ZooService? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
#endif
