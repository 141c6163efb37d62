internal import CacheCore
internal import HTTPTypes

/// A purge as a predicate on the keys and metadata of stored responses.
struct Purge: Sendable {
  private enum Subject: Sendable {
    case uri(String)
    case key(String)
    case prefix(String)
    case tag(String)
    case everything
  }

  let mode: PurgeMode
  private let subject: Subject
  private let scope: PurgeScope

  /// Creates the purge of a selection.
  ///
  /// - Parameter uri: Returns the URI under which loads of a URL store their responses.
  init(
    _ selection: PurgeSelection, _ mode: PurgeMode, in scope: PurgeScope,
    uri: (PurgeSelection.Kind) throws(CacheError) -> String
  ) throws(CacheError) {
    self.mode = mode
    self.scope = scope
    switch selection.kind {
    case .url: subject = .uri(try uri(selection.kind))
    case .prefix: subject = .prefix(try uri(selection.kind))
    case .key(let key): subject = .key(key)
    case .tag(let name): subject = .tag(name)
    case .everything: subject = .everything
    }
  }

  /// A purge of everything in all partitions.
  static let everything = Purge(.everything, in: .all)

  private init(_ subject: Subject, in scope: PurgeScope) {
    mode = .hard
    self.subject = subject
    self.scope = scope
  }

  /// The only resource that the purge is about, or `nil` if the stored entries must be listed.
  var resource: String? {
    guard case .partition(let partition) = scope else { return nil }
    return switch subject {
    case .uri(let uri): ResourceID.make(uri: uri, partition: partition)
    case .key(let key): ResourceID.make(uri: "", key: key, partition: partition)
    case .prefix, .tag, .everything: nil
    }
  }

  /// Whether stored responses of a resource may match, as far as its name tells.
  func mayMeet(_ resource: String) -> Bool { meets(resource, nil) }

  /// Whether a stored response matches.
  func meets(_ key: CacheKey, _ metadata: StoredMetadata) -> Bool { meets(key.resource, metadata) }

  private func meets(_ resource: String, _ metadata: StoredMetadata?) -> Bool {
    let parts = ResourceID.parts(of: resource)
    if case .partition(let partition) = scope, partition ?? "" != parts.partition ?? "" { return false }
    switch subject {
    case .everything: return true
    case .uri(let uri): return parts.kind == .uri && parts.text == uri
    case .key(let key): return parts.kind == .key && parts.text == key
    case .prefix(let prefix):
      switch parts.kind {
      case .uri: return parts.text.utf8.starts(with: prefix.utf8)
      case .key: return metadata.map { ResourceID.uri(of: $0.request)?.utf8.starts(with: prefix.utf8) ?? false } ?? true
      case .name: return false
      }
    case .tag(let name): return metadata.map { CacheTags($0.response.headerFields).contains(name) } ?? true
    }
  }
}
