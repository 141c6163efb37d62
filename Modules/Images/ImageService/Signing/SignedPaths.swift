#if Service
internal import CacheCore
internal import HTTPTypes

/// A path with a valid signature, and its parsed parts.
struct SignedPath: Sendable {
  let operations: ImageOperations
  /// The request for the source.
  let source: HTTPRequest
  /// The operations and their name if no field of a request has an effect on them.
  let constant: (negotiated: ImageOperations.Negotiated, name: String)?
}

/// The signing keys, and the latest paths whose signatures were found valid.
///
/// Most requests are for a few paths, and their signatures need not be checked again. A path contains its signature, so it stays
/// valid until the keys change. The time at which it expires is among its operations, and is checked for each request.
final class SignedPaths: Sendable {
  /// The number of paths after which the older half is forgotten.
  private static let limit = 8_192
  /// The length of the longest remembered path, in bytes.
  private static let lengthLimit = 1_024

  private struct State {
    var keys: [SigningKey]
    var generation = 0
    var newer: [String: SignedPath] = [:]
    var older: [String: SignedPath] = [:]

    /// Returns the paths that are forgotten for the new one. The caller releases them after the lock.
    mutating func remember(_ signed: SignedPath, _ path: String) -> [String: SignedPath] {
      var forgotten: [String: SignedPath] = [:]
      if newer.count >= limit / 2 { (forgotten, older, newer) = (older, newer, [:]) }
      newer[path] = signed
      return forgotten
    }
  }

  private let state: Lock<State>

  init(_ keys: [SigningKey]) { state = Lock(State(keys: keys)) }

  /// The keys, the newest first.
  var keys: [SigningKey] { state.withLock { $0.keys } }

  func setKeys(_ keys: [SigningKey]) {
    state.withLock { $0 = State(keys: keys, generation: $0.generation + 1) }
  }

  /// Returns a path whose signature is valid.
  ///
  /// - Parameter verify: Checks the signature with the keys, and parses the path.
  func signed(_ path: String, verify: ([SigningKey]) throws(CacheError) -> SignedPath) throws(CacheError) -> SignedPath {
    let (known, keys, generation) = state.withLock { ($0.newer[path], $0.keys, $0.generation) }
    if let known { return known }
    let aging = state.withLock { $0.older[path] }
    let signed = if let aging { aging } else { try verify(keys) }
    guard path.utf8.count <= Self.lengthLimit else { return signed }
    _ = state.withLock { state in
      // The keys may have changed during the check.
      state.generation == generation ? state.remember(signed, path) : [:]
    }
    return signed
  }
}
#endif
