#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The stored responses that a purge affects.
public struct PurgeSelection: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case url(URL)
    case key(String)
    case prefix(URL)
    case tag(String)
    case everything
  }

  let kind: Kind

  /// The responses that are stored under a URL, or under its key by ``ResourceManager/Configuration/cacheKey``, in every variant.
  public static func url(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .url(url)) }

  /// The responses that are stored under a key (`RequestOptions.key`, ``ResourceManager/Configuration/cacheKey``), in every
  /// variant.
  public static func key(_ key: String) -> PurgeSelection { PurgeSelection(kind: .key(key)) }

  /// The responses that are stored under a URI with this prefix, and those from such a URI that are stored under a key.
  ///
  /// The bytes of the URIs in normal form are compared (see `ResourceID`). The prefix `…/news` also matches `…/newsletter`, and
  /// `…/news/` matches only the URIs below it. A URL without a path is the root of its host, so it matches no other host.
  public static func prefix(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .prefix(url)) }

  /// The responses that their origin marked with this tag, in `Cache-Tag` or `Surrogate-Key`. Tags are compared byte by byte.
  public static func tag(_ name: String) -> PurgeSelection { PurgeSelection(kind: .tag(name)) }

  /// All stored responses.
  public static let everything = PurgeSelection(kind: .everything)
}

extension PurgeSelection: CustomStringConvertible {
  /// The selection in Swift notation, such as `tag("news")`.
  public var description: String { "\(kind)" }
}

/// The effect of a purge on the responses that it matches.
public enum PurgeMode: String, Hashable, Codable, Sendable, CaseIterable {
  /// Removes the responses.
  case hard
  /// Marks the responses stale. The next use revalidates them, and the origin may confirm them with a 304. Until then, they are
  /// served where stale responses are allowed: with `stale-while-revalidate` and `stale-if-error`, offline, and by policies that
  /// use any stored response.
  ///
  /// A manager without a validator cannot revalidate, so this mode is the same as ``hard``.
  case soft
}

/// The partitions that a purge affects.
public enum PurgeScope: Hashable, Codable, Sendable {
  /// The responses of this partition (`RequestOptions.partition`). `nil` means the responses without a partition.
  case partition(String?)
  /// The responses of all partitions.
  case all
}
