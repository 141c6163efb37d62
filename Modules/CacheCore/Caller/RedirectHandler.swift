/// Decides about each redirect that a load meets, whether its answer came from the network or from the cache.
///
/// The load's own rules stand above it: what it decides to follow counts against the redirect limit, leads to http or https, and
/// from https to http only where that is allowed.
///
/// ```swift
/// options.redirectHandler = .use(RedirectHandler { redirection in
///   redirection.to.host() == "login.example.com" ? .refuse("the session has ended") : .follow
/// })
/// ```
public struct RedirectHandler: Component {
  public let id: ComponentID
  private let decision: @Sendable (Redirection) async -> RedirectDecision

  /// A handler that asks a closure.
  ///
  /// Loads share their work only where their handlers have one ``id``: make a handler once and use it for many loads.
  ///
  /// - Parameters:
  ///   - id: equal for handlers that decide alike; by default no other handler has it.
  ///   - decision: called for one redirect of a load after the other, on no actor. Held strongly.
  public init(
    id: ComponentID = .unique(RedirectHandler.self), _ decision: @escaping @Sendable (Redirection) async -> RedirectDecision
  ) {
    self.id = id
    self.decision = decision
  }

  /// What is to become of a redirect.
  public func decide(_ redirection: Redirection) async -> RedirectDecision { await decision(redirection) }
}
