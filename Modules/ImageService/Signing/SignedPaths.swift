#if Service
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
/// Checking and parsing a path take several times as long as finding its result in memory. A path contains its signature, so it
/// stays valid until the keys change. The time at which it expires is among its operations, and is checked for each request.
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

    mutating func remember(_ signed: SignedPath, _ path: String) {
      if newer.count >= limit / 2 { (older, newer) = (newer, [:]) }
      newer[path] = signed
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
    let (known, keys, generation) = state.withLock { state -> (SignedPath?, [SigningKey], Int) in
      if let known = state.newer[path] { return (known, [], 0) }
      guard let known = state.older[path] else { return (nil, state.keys, state.generation) }
      state.remember(known, path)
      return (known, [], 0)
    }
    if let known { return known }
    let signed = try verify(keys)
    guard path.utf8.count <= Self.lengthLimit else { return signed }
    state.withLock { state in
      // The keys may have changed during the check.
      if state.generation == generation { state.remember(signed, path) }
    }
    return signed
  }
}
#endif
