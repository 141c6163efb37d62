public import CacheCore

/// Changes requests on their way to the network, or refuses them.
///
/// ```swift
/// let agent = DownloadModifier(named: "agent") { $0.head.headerFields[.userAgent] = "App/1" }
/// let signing = DownloadModifier { request in
///   guard request.head.scheme == "https", request.head.authority == "api.example.com" else { return }
///   request.head.headerFields[.authorization] = try await tokens.current()
/// }
/// ```
///
/// - Important: Called at each hop, with the target of a redirect as well, and for alternative sources. A credential that is set
///   without a look at scheme and host is told to every host that a server redirects to: what the manager takes off there, such a
///   modifier puts on again.
///
/// What it throws ends the load before anything is sent: a `CacheError` as it is, anything else as `CacheError.Code.refused` with
/// the error behind it.
public struct DownloadModifier: Sendable {
  /// Changes a request; may wait, and may throw.
  public typealias Change = @Sendable (inout DownloadRequest) async throws -> Void

  let id: ComponentID
  let change: Change

  /// A modifier.
  ///
  /// - Parameters:
  ///   - name: says which modifiers do the same, so that loads which use them may share one download; nil: this one is like no
  ///     other.
  ///   - change: held strongly, called for each request that is sent, retries included.
  public init(named name: String? = nil, _ change: @escaping Change) {
    id = name.map { ComponentID(Self.self, parameters: "named \($0)") } ?? .unique(Self.self)
    self.change = change
  }
}
