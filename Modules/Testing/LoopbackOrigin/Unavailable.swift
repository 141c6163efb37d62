#if !Origin
// Placeholders for the public types of this module. Each names the disabled trait. `OriginServer`, `Route` and `NetworkLink` have
// initializers with the labels of the real ones, because the compiler reports wrong labels first.

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginServer {
  public static func start(
    link: Any? = nil, port: Int = 0, now: Any? = nil, requestBodyLimit: Int = 0, recordedBodyLimit: Int = 0, logLimit: Int = 0
  ) {}
}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct Route {
  public init(
    _ body: Any, contentType: Any? = nil, etag: Any? = nil, lastModified: Any? = nil, fields: Any? = nil, status: Any? = nil,
    acceptsRanges: Bool = false, credential: Any? = nil, delivery: Any? = nil
  ) {}
  public init(inTurn responses: Any) {}
  public init(handler: Any) {}
}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct NetworkLink {
  public init(bitsPerSecond: Int? = nil, latency: Duration = .zero) {}
}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginResponse {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginCounters {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginCredential {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginDelivery {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginError {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginETag {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginFault {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginFraming {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct ReceivedRequest {}

/// Unavailable without the trait `Origin`.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct ReservedPort {
  public init(_ number: Int = 0) {}
}
#endif
