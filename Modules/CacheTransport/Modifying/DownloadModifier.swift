public import CacheCore

/// Changes requests on their way to the network, or refuses them.
///
/// ```swift
/// let agent = DownloadModifier(named: "agent") { $0.head.headerFields[.userAgent] = "App/1" }
/// let signing = DownloadModifier { request in
///   request.head.headerFields[.authorization] = try await tokens.current()
/// }
/// ```
///
/// What it throws ends the load before anything is sent: a `CacheError` as it is, anything else as `CacheError.Code.refused` with the error behind it.
public struct DownloadModifier: Sendable {
  /// Changes a request; may wait, and may throw.
  public typealias Change = @Sendable (inout DownloadRequest) async throws -> Void

  let id: ComponentID
  let change: Change

  /// A modifier.
  ///
  /// - Parameters:
  ///   - name: says which modifiers do the same, so that loads which use them may share one download; nil: this one is like no other.
  ///   - change: held strongly, called for each request that is sent, retries included.
  public init(named name: String? = nil, _ change: @escaping Change) {
    id = name.map { ComponentID(Self.self, parameters: "named \($0)") } ?? .unique(Self.self)
    self.change = change
  }
}
