#if Redis && Origin && Service && SQLite
import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes

/// Loads and purges resources with one manager, and checks every result.
struct SoakLoader: Sendable {
  /// The ways to start a load.
  enum Call: CaseIterable { case async, callback, events }

  let manager: ResourceManager
  let name: String
  let purges: CompletedPurges
  let versions: SharedVersions
  let log: SoakLog
  /// The folder of loads into files. No other manager uses it.
  let folder: String
  private let clock = SystemClock()

  // MARK: Hits

  /// Loads a resource, usually from memory, and measures a hit.
  func hit(_ resource: VersionedResource) async {
    let (number, minimum) = (log.begin("\(name): a load of \(resource.url)"), purges.minimum(resource.number))
    let request = ResourceRequest(resource.url)
    let start = clock.uptime
    let result = await result(of: request)
    let time = clock.uptime - start
    log.end(number)
    if case .success(let loaded) = result, loaded.source == .memory { log.counts.addHit(time, log.member) }
    check(result, of: resource, nil, minimum, attempt(resource, minimum), mayBeCancelled: false)
  }

  // MARK: Loads

  /// Loads a resource, and checks the result.
  func load(
    _ resource: VersionedResource, _ language: String?, by call: Call, cancelledAfter delay: Duration? = nil
  ) async {
    let language = resource.varies ? language : nil
    var request = ResourceRequest(resource.url)
    request.headerFields[.acceptLanguage] = language
    let minimum = purges.minimum(resource.number)
    let number = log.begin("\(name): a load of \(resource.url) \(language ?? "") by \(call)", isWaiter: call == .callback)
    let result: Result<Resource<Data>, CacheError>
    switch call {
    case .callback:
      let (results, sink) = AsyncStream<Result<Resource<Data>, CacheError>>.makeStream()
      let task = manager.load(request) {
        log.end(number)
        sink.yield($0)
      }
      if let delay {
        try? await clock.sleep(for: delay)
        task.cancel()
      }
      var iterator = results.makeAsyncIterator()
      result = await iterator.next() ?? .failure(.cancelled)
    case .async, .events:
      let task = Task { [request] in
        call == .async ? await self.result(of: request) : await finalEvent(of: request)
      }
      if let delay {
        try? await clock.sleep(for: delay)
        task.cancel()
      }
      result = await task.value
      log.end(number)
    }
    check(result, of: resource, language, minimum, attempt(resource, minimum), mayBeCancelled: delay != nil)
  }

  private func result(of request: ResourceRequest) async -> Result<Resource<Data>, CacheError> {
    do throws(CacheError) {
      return .success(try await manager.load(request))
    } catch {
      return .failure(error)
    }
  }

  private func finalEvent(of request: ResourceRequest) async -> Result<Resource<Data>, CacheError> {
    do throws(CacheError) {
      for try await event in manager.events(for: request) {
        if case .final(let loaded) = event { return .success(loaded) }
      }
      return .failure(.cancelled)
    } catch {
      return .failure(error)
    }
  }

  private func check(
    _ result: Result<Resource<Data>, CacheError>, of resource: VersionedResource, _ language: String?,
    _ minimum: CompletedPurges.Minimum, _ attempt: SoakLog.Attempt, mayBeCancelled: Bool
  ) {
    log.count(.loads)
    switch result {
    case .success(let loaded):
      let isStale = loaded.isStale || loaded.fallbackReason != nil
      let reason = loaded.fallbackReason?.description ?? "none"
      let source = "\(loaded.source), \(loaded.validation), age \(loaded.age), fallback reason \(reason)"
      check(
        SoakResponse(
          head: loaded.response, data: loaded.data, source: source, isStale: isStale, isFresh: loaded.fallbackReason == nil),
        of: resource, language, nil,
        minimum, loaded.source)
      if let error = loaded.fallbackReason { log.check(fallbackReason: error, attempt) }
    case .failure(let error): fail(error, attempt, mayBeCancelled: mayBeCancelled)
    }
  }

  private func attempt(
    _ resource: VersionedResource, _ minimum: CompletedPurges.Minimum, _ kind: String = "a load", writesFiles: Bool = false
  ) -> SoakLog.Attempt {
    SoakLog.Attempt(
      name: "\(name): \(kind) of \(resource.url)", source: .resource(resource.number), start: minimum.uptime,
      writesFiles: writesFiles)
  }

  private func check(
    _ response: SoakResponse, of resource: VersionedResource, _ language: String?, _ range: SoakRange?,
    _ minimum: CompletedPurges.Minimum, _ source: ResourceSource
  ) {
    switch source {
    case .memory: log.count(.memory)
    case .disk: log.count(.disk)
    case .revalidated: log.count(.revalidated)
    default: log.count(.network)
    }
    if response.isStale { log.count(.stale) }
    do {
      try response.check(resource, language, range, purges, minimum)
    } catch {
      log.fail(.wrong, "\(name): \(error)")
    }
  }

  private func fail(_ error: CacheError, _ attempt: SoakLog.Attempt, mayBeCancelled: Bool) {
    if error.isCancellation, mayBeCancelled { return log.count(.cancelled) }
    log.fail(error, attempt)
  }

  /// Loads a resource into a file, and checks its bytes.
  func loadFile(_ resource: VersionedResource, cancelledAfter delay: Duration?) async {
    let (number, minimum) = (log.begin("\(name): a load of \(resource.url) into a file"), purges.minimum(resource.number))
    // The same file each time, so that the rest of an interrupted load is requested.
    let file = URL(filePath: "\(folder)/\(resource.number)")
    let task = Task { () -> Result<Resource<URL>, CacheError> in
      do throws(CacheError) {
        return .success(try await manager.load(resource.url, to: file))
      } catch {
        return .failure(error)
      }
    }
    if let delay {
      try? await clock.sleep(for: delay)
      task.cancel()
    }
    let result = await task.value
    log.end(number)
    log.count(.loads)
    let attempt = attempt(resource, minimum, "a load into a file", writesFiles: true)
    switch result {
    case .success(let loaded):
      let data = (try? Data(contentsOf: file)) ?? Data()
      try? FileManager.default.removeItem(at: file)
      check(
        SoakResponse(
          head: loaded.response, data: data, source: "a file from \(loaded.source)",
          isStale: loaded.isStale || loaded.fallbackReason != nil, isFresh: loaded.fallbackReason == nil), of: resource, nil, nil,
        minimum, loaded.source)
      if let error = loaded.fallbackReason { log.check(fallbackReason: error, attempt) }
    case .failure(let error): fail(error, attempt, mayBeCancelled: delay != nil)
    }
  }

  // MARK: Responses

  /// Requests a resource or a range of it as a client of an HTTP cache does.
  ///
  /// - Parameter bytes: The number of bytes after which the client leaves, or `nil` to read everything.
  func respond(_ resource: VersionedResource, _ language: String?, _ range: SoakRange?, leavesAfter bytes: Int?) async {
    let minimum = purges.minimum(resource.number)
    let number = log.begin("\(name): a response of \(resource.url) \(range?.field ?? "")")
    // The body may be in a temporary file.
    var attempt = attempt(resource, minimum, "a response \(range?.field ?? "")", writesFiles: true)
    log.count(.loads)
    defer { log.end(number) }
    var head: HTTPResponse?
    do throws(CacheError) {
      var request = try HTTPRequest(resource: resource.url)
      request.headerFields[.range] = range?.field
      if resource.varies { request.headerFields[.acceptLanguage] = language }
      let response = try await manager.respond(to: request)
      head = response.head
      var data = Data()
      while let chunk = try await response.body.source.next() {
        data += chunk
        if let bytes, data.count >= bytes {
          response.body.source.cancel()
          return log.count(.cancelled)
        }
      }
      guard response.head.status.code < 500 else { return log.fail(.status, attempt, "status \(response.head.status)") }
      let isStale = response.fallbackReason != nil || response.status.lifetimeLeft ?? .zero < .zero
      check(
        SoakResponse(
          head: response.head, data: data,
          source: "\(response.source), reason \(response.fallbackReason?.description ?? "-")", isStale: isStale,
          isFresh: response.fallbackReason == nil),
        of: resource, language, range, minimum, response.source)
      if let error = response.fallbackReason { log.check(fallbackReason: error, attempt) }
    } catch {
      attempt.lacksRest = head.map { resource.lacksRest($0, resource.varies ? language : nil, versions) } ?? false
      fail(error, attempt, mayBeCancelled: false)
    }
  }

  // MARK: Purges

  /// Purges resources. The purge may fail while a store is disturbed.
  func purge(_ selection: PurgeSelection, _ mode: PurgeMode, _ resources: [Int]) async {
    let number = log.begin("\(name): \(mode) purge of \(selection)")
    defer { log.end(number) }
    let purge = purges.begin(resources)
    do throws(CacheError) {
      try await manager.purge(selection, mode)
      purges.end(purge, mode)
      log.count(.purges)
    } catch {
      log.count(.failedPurges)
      switch error.code {
      case .storeUnavailable, .diskFull, .readOnly, .overloaded, .fileSystem, .timedOut: break
      default: log.fail(.wrong, "\(name): \(mode) purge of \(selection): \(error)")
      }
    }
  }
}
#endif
