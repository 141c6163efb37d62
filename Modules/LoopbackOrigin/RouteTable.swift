#if Origin
internal import CacheCore
internal import HTTPTypes

/// The routes of an origin.
final class RouteTable: Sendable {
  private struct State: Sendable {
    var routes: [String: Route] = [:]
    var fallback: Route
    var proxyCredential: OriginCredential?
  }

  private let state: Lock<State>

  init(fallback: Route) { state = Lock(State(fallback: fallback)) }

  func set(_ route: Route?, for target: String) { state.withLock { $0.routes[target] = route } }

  func setFallback(_ route: Route) { state.withLock { $0.fallback = route } }

  func setProxyCredential(_ credential: OriginCredential?) { state.withLock { $0.proxyCredential = credential } }

  func removeAll() { state.withLock { $0.routes = [:] } }

  /// Returns the route for a request. A route with a query matches that query only and takes precedence.
  func route(for request: ReceivedRequest) -> Route {
    state.withLock { state in
      if request.isProxied {
        if let credential = state.proxyCredential, !credential.accepts(request.fields[.proxyAuthorization]) {
          return Route(
            OriginResponse(
              text: "proxy credential required\n", status: .proxyAuthenticationRequired,
              fields: [.proxyAuthenticate: credential.challenge]))
        }
        // A tunnel would need a second server at its other end.
        if request.method == .connect {
          return Route(OriginResponse(text: "CONNECT is not supported\n", status: .notImplemented))
        }
      }
      return state.routes[request.target] ?? state.routes[request.path] ?? state.fallback
    }
  }
}
#endif
