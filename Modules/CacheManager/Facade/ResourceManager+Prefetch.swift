public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a prefetch has done.
public struct PrefetchReport: Sendable {
  /// Loaded, or confirmed, over the network.
  public var loaded = 0
  /// Left alone, because the cache could answer already.
  public var skipped = 0
  /// In the cache and outdated, but nobody could be asked.
  public var unconfirmed = 0
  /// Not loaded, with the reasons. A cancelled prefetch lists what it did not get to.
  public var failed: [Failure] = []

  /// Why one URL is not in the cache.
  public struct Failure: Sendable {
    /// What was asked for.
    public var url: URL
    /// Why it is not there.
    public var error: CacheError
  }
}

extension ResourceManager {
  /// Brings resources into the cache ahead of time: at low priority, a few at a time, skipping what is cached.
  ///
  /// A failure does not stop the others. Cancelling the calling task stops the transfers.
  ///
  /// - Parameters:
  ///   - requests: what to bring in, in this order.
  ///   - concurrency: how many loads run at the same time; at least 1.
  public func prefetch(_ requests: [ResourceRequest], concurrency: Int = 4) async -> PrefetchReport {
    await withTaskGroup(of: (URL, Result<Resource<Data>, CacheError>).self) { group in
      var report = PrefetchReport()
      var waiting = requests.makeIterator()
      func startNext() {
        guard let request = waiting.next() else { return }
        group.addTask { (request.url, await self.prefetch(request)) }
      }
      for _ in 0..<min(max(1, concurrency), requests.count) { startNext() }
      while let (url, result) = await group.next() {
        switch result {
        case .success(let resource): report.count(resource)
        case .failure(let error): report.failed.append(.init(url: url, error: error))
        }
        startNext()
      }
      return report
    }
  }

  /// Brings URLs into the cache ahead of time.
  public func prefetch(_ urls: [URL], concurrency: Int = 4, options: RequestOptions = RequestOptions()) async -> PrefetchReport {
    await prefetch(urls.map { ResourceRequest($0, options: options) }, concurrency: concurrency)
  }

  private func prefetch(_ request: ResourceRequest) async -> Result<Resource<Data>, CacheError> {
    var request = request
    request.options.priority = min(request.options.priority, .low)
    do throws(CacheError) {
      return .success(try await load(request))
    } catch {
      return .failure(error)
    }
  }
}

extension PrefetchReport {
  fileprivate mutating func count(_ resource: Resource<Data>) {
    switch resource.source {
    case .memory, .disk: if resource.validation == .failed { unconfirmed += 1 } else { skipped += 1 }
    case .revalidated, .network, .provider: loaded += 1
    }
  }
}
