internal import CacheCore
internal import HTTPTypes

// RFC 9111 §3: storing responses.
extension ValidatorContract {
  private static let minute: HTTPFields = [.cacheControl: "max-age=60"]

  static let storing: [Case] = [
    row("9111 §3", .must, "a response to an unknown method is not stored", send(unknownMethod, 0, origin: ok(minute), .passed)),
    row("9110 §9.3.4", .must, "a response to PUT is not stored", send(.put, 0, origin: ok(minute), .passed)),
    row("9110 §9.3.5", .must, "a response to DELETE is not stored", send(.delete, 0, origin: ok(minute), .passed)),
    row("9110 §9.3.7", .must, "a response to OPTIONS is not stored", send(.options, 0, origin: ok(minute), .passed)),
    row("9110 §9.3.8", .must, "a response to TRACE is not stored", send(.trace, 0, origin: ok(minute), .passed)),
    row(
      "9110 §9.3.2", .must, "a response to HEAD does not serve a GET",
      send(.head, 0, origin: ok(minute), .forwarded), get(1, .forwarded)),
    row(
      "9110 §9.3.3", .must, "a response to POST without Content-Location does not serve a GET",
      send(.post, 0, origin: ok(minute), .forwarded), get(1, .forwarded)),
    row(
      "9110 §9.3.3", .must, "a response to POST that represents another resource does not serve a GET",
      send(.post, 0, origin: ok([.cacheControl: "max-age=60", .contentLocation: "/other"]), .forwarded), get(1, .forwarded)),
    row(
      "9110 §9.3.3", .may, "a response to POST with a lifetime that represents its target serves a GET",
      send(.post, 0, origin: ok([.cacheControl: "max-age=60", .contentLocation: "/page"]), .stored), get(1, .used)),
    row("9111 §3", .must, "an interim response is not stored", get(0, origin: status(103, minute), .passed)),
    row(
      "9111 §3", .must, "a 304 to a condition of the client is not stored as a response",
      get(0, with: [.ifNoneMatch: a], origin: status(304, [.eTag: a, .cacheControl: "max-age=60"]), .passed, status: 304),
      get(1, .forwarded)),
    row(
      "9111 §3", .must, "a response without a lifetime is not stored if its status is not heuristically cacheable",
      get(0, origin: status(302, [.location: "/other"]), .passed)),
    row(
      "9111 §5.2.1.5", .must, "a response to a request with no-store is not stored",
      get(0, with: [.cacheControl: "no-store"], origin: ok(minute), .passed)),
    row(
      "9111 §5.2.1.5", .must, "a 304 to a request with no-store updates no stored response",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(10, with: [.cacheControl: "no-store"], origin: status(304, [.eTag: a, .cacheControl: "max-age=60"]), .forwarded),
      get(20, .forwarded)),
    row(
      "9111 §5.2.2.5", .must, "a response with no-store is not stored",
      get(0, origin: ok([.cacheControl: "max-age=60, no-store"]), .passed)),
    row(
      "9111 §5.2", .must, "the names of directives are compared without case",
      get(0, origin: ok([.cacheControl: "max-age=60, No-Store"]), .passed)),
    row(
      "9111 §5.2.2.3", .must, "a response with must-understand and an unknown status is not stored",
      get(0, origin: status(599, [.cacheControl: "must-understand, max-age=60"]), .passed)),
    row(
      "9111 §5.2.2.3", .should, "must-understand overrides no-store if the status is known",
      get(0, origin: ok([.cacheControl: "must-understand, no-store, max-age=60"]), .stored), get(1, .used)),
    row(
      "9111 §5.2.2.7", .must, "a shared cache does not store a private response", in: [.shared],
      get(0, origin: ok([.cacheControl: "max-age=60, private"]), .passed)),
    row(
      "9111 §5.2.2.7", .may, "a private cache stores a private response", in: [.private],
      stored([.cacheControl: "max-age=60, private"]), get(59, .used)),
    row(
      "9111 §3.5", .must, "a shared cache does not reuse a response to a request with Authorization", in: [.shared],
      get(0, with: [.authorization: "Basic YTph"], origin: ok(minute), .forwarded),
      get(1, with: [.authorization: "Basic YTph"], .forwarded), get(1, .forwarded)),
    row(
      "9111 §3.5", .must, "proxy-revalidate does not permit sharing", in: [.shared],
      get(0, with: [.authorization: "Basic YTph"], origin: ok([.cacheControl: "max-age=60, proxy-revalidate"]), .forwarded),
      get(1, with: [.authorization: "Basic YTph"], .forwarded), get(1, .forwarded)),
    row(
      "9111 §3.5", .must, "a 304 to a request with Authorization does not extend the lifetime for other clients", in: [.shared],
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(
        10, with: [.authorization: "Basic YTph"], origin: status(304, [.eTag: a, .cacheControl: "max-age=60"]), .forwarded),
      get(20, .forwarded)),
    row(
      "9111 §3.5", .may, "a private cache reuses a response to a request with Authorization for an equal one", in: [.private],
      stored(minute, to: [.authorization: "Basic YTph"]), get(1, with: [.authorization: "Basic YTph"], .used)),
  ]

  // §3.5
  static let permissions: [Case] = ["public, max-age=60", "must-revalidate, max-age=60", "s-maxage=60"].map { directives in
    row(
      "9111 §3.5", .may, "\(directives) permits a shared cache to reuse a response to a request with Authorization",
      in: [.shared], stored([.cacheControl: directives], to: [.authorization: "Basic YTph"]), get(1, .used))
  }

  static let statuses: [Case] =
    [200, 203, 204, 300, 301, 308].map { code in
      row(
        "9110 §15.1", .may, "a \(code) without a lifetime is stored, and validated before its use",
        get(0, origin: status(code, [.eTag: a]), .stored), get(1, origin: status(304, [.eTag: a]), .validated, status: code))
    }
    + [302, 307, 404, 410, 500, 599].map { code in
      row(
        "9111 §3", .may, "a \(code) with a lifetime is stored", get(0, origin: status(code, minute), .stored),
        get(59, .used, status: code), get(60, .forwarded))
    }

  // §3.1
  static let fieldsInStore: [Case] = [
    row(
      "9111 §3.1", .must, "all fields are stored, including unknown ones",
      stored([.cacheControl: "max-age=60", custom: "1", .contentType: "text/plain", .server: "a"]),
      get(1, .used, reply: [custom: "1", .contentType: "text/plain", .server: "a", .cacheControl: "max-age=60"])),
    row(
      "9111 §3.1", .must, "Connection and the fields that it names are not part of a later reply",
      stored([.cacheControl: "max-age=60", .connection: "x-custom", custom: "1"]),
      get(1, .used, reply: [.connection: nil, custom: nil])),
    row(
      "9111 §3.1", .must, "fields that concern one connection are not part of a later reply",
      stored([
        .cacheControl: "max-age=60", name("Keep-Alive"): "timeout=5", name("Proxy-Connection"): "close", .upgrade: "h2c",
        .transferEncoding: "chunked", .te: "trailers",
      ]),
      get(
        1, .used,
        reply: [name("Keep-Alive"): nil, name("Proxy-Connection"): nil, .upgrade: nil, .transferEncoding: nil, .te: nil])),
    row(
      "9111 §3.1", .must, "fields of a proxy are not stored",
      stored([
        .cacheControl: "max-age=60", .proxyAuthenticate: "Basic", .proxyAuthenticationInfo: "a=b", .proxyAuthorization: "a",
      ]),
      get(1, .used, reply: [.proxyAuthenticate: nil, .proxyAuthenticationInfo: nil, .proxyAuthorization: nil])),
    row(
      "9111 §5.2.2.4", .must, "a field that no-cache names is not part of a reply without validation",
      get(0, origin: ok([.cacheControl: "max-age=60, no-cache=\"x-custom\"", custom: "1"]), .stored),
      get(1, .used, reply: [custom: nil])),
    row(
      "9111 §5.2.2.7", .must, "a shared cache does not store a field that private names", in: [.shared],
      get(0, origin: ok([.cacheControl: "max-age=60, private=\"x-custom\"", custom: "1"]), .stored),
      get(1, .used, reply: [custom: nil])),
    row(
      "9111 §5.2.2.7", .must, "a private cache stores a field that private names", in: [.private],
      stored([.cacheControl: "max-age=60, private=\"x-custom\"", custom: "1"]), get(1, .used, reply: [custom: "1"])),
  ]
}
