#if Gateway
import CacheCore
import HTTPTypes

/// An answer on its way to the client.
struct ProxyAnswer: Sendable {
  /// Status, reason phrase and fields; those about one connection are dropped when it is written.
  var head: HTTPResponse
  var body: ResourceBody
  /// What the cache had to do with it.
  var outcome: CacheOutcome
  /// Whether the connection ends with it.
  var closes = false
}

/// What the cache had to do with an answer, as the log and the status page tell it.
enum CacheOutcome: String, Sendable, CaseIterable {
  /// A stored answer, and nobody was asked.
  case hit
  /// A stored answer that the origin has confirmed.
  case revalidated
  /// A stored answer, shown although it is stale.
  case stale
  /// The answer to another client's request at the same moment.
  case collapsed
  /// The origin's answer.
  case miss
  /// No cache was asked.
  case bypass
  /// The origin was asked and gave no answer, or none that makes sense: the gateway says so in its place.
  case failed
  /// The gateway's own word: a refusal, an error, a page.
  case local
}
#endif
