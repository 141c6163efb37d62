#if Origin
  /// Which route a request gets.
  final class RouteTable: Sendable {
    private struct State: Sendable {
      var routes: [String: Route] = [:]
      var fallback: Route
    }

    private let state: OriginLock<State>

    init(fallback: Route) { state = OriginLock(State(fallback: fallback)) }

    func set(_ route: Route?, for target: String) { state.withLock { $0.routes[target] = route } }

    func setFallback(_ route: Route) { state.withLock { $0.fallback = route } }

    func removeAll() { state.withLock { $0.routes = [:] } }

    /// A route that was set with a query answers that query alone, and goes first.
    func route(for request: ReceivedRequest) -> Route {
      state.withLock { $0.routes[request.target] ?? $0.routes[request.path] ?? $0.fallback }
    }
  }
#endif
