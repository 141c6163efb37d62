#if Redis && Origin
import CacheCore
import CacheManager
import Foundation
import HTTPTypes
import StoreComposition

/// Loads and purges resources in one process and checks every result.
struct VersionedLoader: Sendable {
  /// The ways to start a load.
  enum Call: CaseIterable { case async, callback, events }

  private let manager: ResourceManager
  /// The layers of the store by name, for the report of a failure.
  private let layers: [(name: String, store: any CacheStore)]
  private let store: LayeredStore
  private let versions: SharedVersions
  private let clock = SystemClock()
  let log: LoadLog

  init(
    _ manager: ResourceManager, _ store: LayeredStore, _ layers: [(name: String, store: any CacheStore)],
    _ versions: SharedVersions, _ log: LoadLog
  ) {
    (self.manager, self.store, self.layers, self.versions, self.log) = (manager, store, layers, versions, log)
  }

  func close() async {
    await manager.close()
    await store.flush()
  }

  // MARK: Loads

  /// Loads a resource, usually from memory.
  ///
  /// - Returns: The time of the load, or `nil` if the response was not in memory.
  func hit(_ resource: VersionedResource) async -> Duration? {
    let (number, floors) = (log.begin("a load of \(resource.url)"), versions.floors(resource.number))
    let request = ResourceRequest(resource.url)
    let start = clock.uptime
    let result: Result<Resource<Data>, CacheError>
    do throws(CacheError) {
      result = .success(try await manager.load(request))
    } catch {
      result = .failure(error)
    }
    let time = clock.uptime - start
    let sharedTime = log.end(number)
    await check(result, of: resource, nil, floors, sharedTime, mayBeCancelled: false)
    guard case .success(let loaded) = result, loaded.source == .memory else { return nil }
    return time
  }

  /// Loads a resource and checks the result. A load that is not cancelled must not fail.
  func load(
    _ resource: VersionedResource, _ language: String?, by call: Call, cancelledAfter patience: Duration? = nil
  ) async {
    let language = resource.varies ? language : nil
    var request = ResourceRequest(resource.url)
    request.headerFields[.acceptLanguage] = language
    let (number, floors) = (log.begin("a load of \(resource.url) \(language ?? "")"), versions.floors(resource.number))
    let result: Result<Resource<Data>, CacheError>
    let sharedTime: Duration
    switch call {
    case .callback:
      let (results, sink) = AsyncStream<(Result<Resource<Data>, CacheError>, Duration)>.makeStream()
      let task = manager.load(request) { sink.yield(($0, log.end(number))) }
      if let patience {
        try? await clock.sleep(for: patience)
        task.cancel()
      }
      var iterator = results.makeAsyncIterator()
      (result, sharedTime) = await iterator.next() ?? (.failure(.cancelled), .zero)
    case .async, .events:
      let task = Task { [request] in
        call == .async ? await self.result(of: request) : await finalEvent(of: request, resource, language, floors)
      }
      if let patience {
        try? await clock.sleep(for: patience)
        task.cancel()
      }
      result = await task.value
      sharedTime = log.end(number)
    }
    await check(result, of: resource, language, floors, sharedTime, mayBeCancelled: patience != nil)
  }

  private func result(of request: ResourceRequest) async -> Result<Resource<Data>, CacheError> {
    do throws(CacheError) {
      return .success(try await manager.load(request))
    } catch {
      return .failure(error)
    }
  }

  private func finalEvent(
    of request: ResourceRequest, _ resource: VersionedResource, _ language: String?, _ floors: SharedVersions.Floors
  ) async -> Result<Resource<Data>, CacheError> {
    do throws(CacheError) {
      for try await event in manager.events(for: request) {
        switch event {
        case .progress: continue
        case .stale: log.fail("\(resource.url): a stale response, which the policy does not allow")
        case .final(let loaded): return .success(loaded)
        }
      }
      return .failure(.cancelled)
    } catch {
      return .failure(error)
    }
  }

  /// - Parameter sharedTime: The time since the start of the earliest load that this one may have joined.
  private func check(
    _ result: Result<Resource<Data>, CacheError>, of resource: VersionedResource, _ language: String?,
    _ floors: SharedVersions.Floors, _ sharedTime: Duration, mayBeCancelled: Bool
  ) async {
    do {
      let loaded = try result.get()
      log.count("\(loaded.source)")
      guard let version = resource.version(loaded.response, language) else {
        throw FailedCheck("\(resource.url): the response of another resource, \(loaded.response)")
      }
      try require(
        loaded.data == resource.body(version, language),
        "\(resource.url): \(loaded.data.count) wrong bytes, from \(loaded.source), for version \(version)")
      // A response that was fresh when the work of the load began can be stale when it is delivered.
      let staleTime = loaded.age - .seconds(resource.lifetime)
      let becameStale = staleTime >= .zero && staleTime <= sharedTime
      if loaded.isStale, becameStale {
        log.count(staleTime <= loaded.duration ? "became stale during a load" : "became stale during a joined load")
      }
      try require(
        (!loaded.isStale || becameStale) && loaded.fallbackReason == nil,
        "\(resource.url): a stale response, because \(loaded.fallbackReason?.description ?? "nothing failed")")
      do {
        if try versions.check(version, of: resource.number, floors) {
          log.count("committed during a purge")
          log.note("\(resource.url): read version \(version), which was committed during a purge, from \(loaded.source)")
        }
      } catch {
        throw FailedCheck(
          "\(error); from \(loaded.source), \(loaded.validation), age \(loaded.age), at \(floors.start) for "
            + "\(clock.uptime - floors.start); \(await stored(loaded.key))")
      }
    } catch let error as CacheError {
      guard mayBeCancelled, error.isCancellation else {
        return log.fail("\(resource.url) could not be loaded, but the origin has it: \(error)")
      }
      log.count("cancelled")
    } catch {
      log.fail("\(error)")
    }
  }

  /// Describes the responses in the layers of the store.
  private func stored(_ key: CacheKey) async -> String {
    var texts: [String] = []
    for (name, store) in layers {
      do throws(CacheError) {
        let metadata = try await store.entry(for: key)?.metadata
        let times = metadata.map { "requested \($0.requestTime), fresh until \($0.freshness.freshUntil)" } ?? ""
        texts.append("\(name): \(metadata?.response.headerFields[.eTag] ?? "none") \(times)")
      } catch {
        texts.append("\(name): \(error)")
      }
    }
    return texts.joined(separator: "; ")
  }

  // MARK: Purges

  /// Purges resources in all processes. The purge may fail while the server is disturbed.
  func purge(_ selection: PurgeSelection, _ mode: PurgeMode, _ resources: [Int]) async {
    let number = log.begin("\(mode) purge of \(selection)")
    defer { log.end(number) }
    let purge = versions.beginPurge(resources)
    do throws(CacheError) {
      log.note("begins \(mode) purge of \(selection)")
      try await manager.purge(selection, mode)
      log.note("ends \(mode) purge of \(selection)")
      log.count("purges")
      log.count("purged resources", resources.count)
      log.count("certainly purged", versions.endPurge(purge))
    } catch {
      log.note("ends \(mode) purge of \(selection) with \(error)")
      switch error.code {
      case .storeUnavailable, .diskFull, .readOnly, .overloaded: log.count("purges that failed: \(error.code.rawValue)")
      default: log.fail("\(mode) purge of \(selection): \(error)")
      }
    }
  }
}
#endif
