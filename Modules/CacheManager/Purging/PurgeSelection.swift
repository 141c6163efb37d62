#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Which stored answers a purge is about.
public struct PurgeSelection: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case url(URL)
    case key(String)
    case prefix(URL)
    case tag(String)
    case everything
  }

  let kind: Kind

  /// What is filed under a URL, in every variant.
  public static func url(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .url(url)) }

  /// What is filed under a caller's own key (`RequestOptions.key`), in every variant.
  public static func key(_ key: String) -> PurgeSelection { PurgeSelection(kind: .key(key)) }

  /// What is filed under a URI that begins with this one, or came from one and is filed under a caller's own key.
  ///
  /// Compared are the bytes of the URIs in normal form (see `ResourceID`): `…/news` meets `…/newsletter` too, `…/news/` only what
  /// is below it. A URL without a path is its host's root, so it meets no other host.
  public static func prefix(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .prefix(url)) }

  /// What its origin gave this tag, in `Cache-Tag` or `Surrogate-Key` (see `CacheTags`).
  public static func tag(_ name: String) -> PurgeSelection { PurgeSelection(kind: .tag(name)) }

  /// Everything that is stored.
  public static let everything = PurgeSelection(kind: .everything)
}

extension PurgeSelection: CustomStringConvertible {
  /// The selection as it is written in Swift, such as `tag("news")`.
  public var description: String { "\(kind)" }
}

/// What a purge does with the answers it meets.
public enum PurgeMode: String, Hashable, Sendable, CaseIterable {
  /// Removes them.
  case hard
  /// Marks them stale: the next use asks the origin, which may confirm them with a 304. Until then they are stale answers like
  /// any others: shown where those are (`stale-while-revalidate`, `stale-if-error`, offline, policies that use whatever is
  /// stored), and nowhere else.
  ///
  /// A manager without a validator asks nobody about an answer, so there it is as ``hard``.
  case soft
}

/// The parts of a cache that a purge reaches.
public enum PurgeScope: Hashable, Sendable {
  /// What was loaded in this partition (`RequestOptions.partition`); nil: what was loaded in none.
  case partition(String?)
  /// Everything, whoever loaded it.
  case all
}
