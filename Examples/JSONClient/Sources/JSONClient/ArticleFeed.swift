import Etagere
import Foundation

/// An article, as the API sends it.
struct Article: Codable, Hashable, Identifiable, Sendable {
  var id: Int
  var title: String
}

/// The articles to show, and how current they are.
struct FeedSnapshot: Hashable, Sendable {
  enum State: Hashable, Sendable {
    /// The articles are cached, and a request to the origin is running.
    case updating
    /// The articles are fresh, or the origin has just sent or confirmed them.
    case current
    /// The articles are cached, and the origin cannot be reached. Show the reason beside them.
    case offline(reason: String)
  }

  var articles: [Article]
  var state: State
}

/// A client of a JSON API. The manager below it caches the responses.
struct ArticleFeed: Sendable {
  let manager: ResourceManager
  let url: URL

  private static let articles = ResourceTransform.json([Article].self) { $0.count * 256 }

  /// Returns the snapshots to show when a screen appears: cached articles at once, then the current ones.
  func snapshots() -> some AsyncSequence<FeedSnapshot, CacheError> {
    let options = RequestOptions { $0.policy = .staleWhileRevalidate }
    return manager.events(for: url, as: Self.articles, options: options).compactMap { event in
      switch event {
      case .progress: nil
      case .stale(let cached): FeedSnapshot(articles: cached.value, state: .updating)
      case .final(let resource): FeedSnapshot(resource)
      }
    }
  }

  /// Returns the current articles for pull to refresh. Sends a conditional request even if the cached ones are fresh.
  ///
  /// A 304 costs no body. If the origin cannot be reached, the result is the cached articles, marked as offline.
  ///
  /// - Throws: The network's error if nothing is cached, or the error of the status or the decoder.
  func refresh() async throws(CacheError) -> FeedSnapshot {
    FeedSnapshot(try await manager.load(url, as: Self.articles, options: RequestOptions { $0.policy = .revalidate() }))
  }
}

extension FeedSnapshot {
  fileprivate init(_ resource: Resource<[Article]>) {
    self.init(articles: resource.value, state: resource.fallbackReason.map { .offline(reason: $0.reason) } ?? .current)
  }
}

extension ResourceTransform where Value: Decodable {
  /// Returns a transform that decodes JSON. The value is cached in memory until the body of the response changes.
  ///
  /// - Parameter cost: Returns the approximate size of a value in memory, in bytes.
  static func json(_ type: Value.Type, cost: @escaping @Sendable (Value) -> Int) -> Self {
    ResourceTransform(id: "json \(String(reflecting: type))", cost: cost) { body, _ throws(CacheError) in
      let data = try await body.collect()
      do {
        return try JSONDecoder().decode(Value.self, from: data)
      } catch {
        throw CacheError(.decodingFailed, reason: "\(error)")
      }
    }
  }
}
