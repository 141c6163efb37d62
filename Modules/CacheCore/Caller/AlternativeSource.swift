#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Another place to ask when the original can't be had.
///
/// ```swift
/// let options = RequestOptions { $0.alternatives = [.mirror(elsewhere), .lowData(thumbnail)] }
/// ```
///
/// It is asked with the load's own method and fields, without conditions, and at another origin without credentials and cookies.
public struct AlternativeSource: Hashable, Sendable {
  /// What an alternative is to the original.
  public enum Kind: String, Hashable, Sendable {
    /// The same resource elsewhere. Its answer is stored under what was asked for, without the validators (`ETag`,
    /// `Last-Modified`), which are words of another server: the original is never asked about bytes that are not its own.
    case mirror
    /// A smaller resource for networks in low-data mode. It is asked only where the original needs a network that may not be
    /// used, and stored as the resource that it is, under its own URL: what was asked for is loaded in full when the network
    /// allows it again.
    case lowData
  }

  /// Where to ask.
  public var url: URL
  /// What it is to the original.
  public var kind: Kind

  /// An alternative of its parts.
  public init(_ url: URL, kind: Kind = .mirror) {
    self.url = url
    self.kind = kind
  }

  /// The same resource at another place; a `file:` URL will do where the manager has a provider for it.
  public static func mirror(_ url: URL) -> AlternativeSource { AlternativeSource(url) }

  /// A smaller resource, for networks in low-data mode (``NetworkAccess/constrained``), which the original is not loaded over
  /// then.
  public static func lowData(_ url: URL) -> AlternativeSource { AlternativeSource(url, kind: .lowData) }
}
