#if Service
public import CacheCore
internal import Crypto
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A secret key that signs the paths of an ``ImageService``, with HMAC and SHA-256 (RFC 2104).
///
/// ```swift
/// let key = try SigningKey(hexadecimal: "8f0c…")  // openssl rand -hex 32
/// let path = key.path(for: "https://photos.example.com/cat.jpg", operations: "width=400,format=webp")
/// ```
///
/// Keep it on servers. A program that has the key can request every operation on every allowed source.
public struct SigningKey: Sendable {
  /// The smallest length of a key, in bytes. A shorter key is weaker than the hash (RFC 2104 §3).
  public static let minimumLength = 32

  private let key: SymmetricKey

  /// Creates a key from random bytes.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if there are fewer than ``minimumLength`` bytes.
  public init(bytes: some Collection<UInt8>) throws(CacheError) {
    guard bytes.count >= Self.minimumLength else {
      throw CacheError(
        .invalidConfiguration,
        reason: "a signing key has \(bytes.count) bytes and needs at least \(Self.minimumLength)")
    }
    key = SymmetricKey(data: Data(bytes))
  }

  /// Creates a key from hexadecimal digits, two for each byte. `openssl rand -hex 32` prints such a key.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if the text has other characters or too few digits. The error does not
  ///   contain the text.
  public init(hexadecimal text: String) throws(CacheError) {
    let digits = text.utf8.compactMap(\.hexValue)
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else {
      throw CacheError(.invalidConfiguration, reason: "a signing key is not written in pairs of hexadecimal digits")
    }
    try self.init(bytes: stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
  }

  /// Creates a key of random bytes, for tests and for paths that one process makes and serves.
  public static func random() -> SigningKey { SigningKey(key: SymmetricKey(size: .bits256)) }

  private init(key: SymmetricKey) { self.key = key }

  /// Returns the signed path of an image.
  ///
  /// - Parameters:
  ///   - source: The URL of the image, or the name of a folder, a slash, and the path of a file in it.
  ///   - operations: The operations, separated by commas, such as `width=400,format=webp`.
  ///   - expiry: The time after which the service refuses the path, in whole seconds, or `nil` for no limit.
  ///   - prefix: The path of the service.
  public func path(
    for source: String, operations: String, expiresAt expiry: Timestamp? = nil, under prefix: String = "/img"
  ) -> String {
    var operations = operations
    if let expiry { operations += (operations.isEmpty ? "" : ",") + "expires=\(expiry.seconds)" }
    let signed = PathParts.signed(operations, source)
    return "\(prefix)/\(signature(of: signed))/\(signed)"
  }

  /// Returns the signature of the rest of a path, in base64url without padding (RFC 4648 §5).
  func signature(of text: String) -> String {
    Base64URL.text(Data(HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)))
  }

  /// Whether a signature is that of the text. The time that the comparison takes does not depend on the signature's bytes.
  func accepts(_ signature: Data, of text: Data) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: text, using: key)
  }
}

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
