#if Service
public import CacheCore
internal import Crypto

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
#endif
