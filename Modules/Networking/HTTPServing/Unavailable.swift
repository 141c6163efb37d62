#if !Server
// Placeholders for the public types of this module. Each names the disabled trait. `HTTPListener` and `HostAndPort` have
// initializers with the labels of the real ones, because the compiler reports wrong labels first.

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct HTTPListener {
  public init(_ address: Any, _ responder: Any, settings: Any = (), group: Any = (), onRunning: Any = ()) {}
}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct HostAndPort {
  public init(host: Any, port: Any) {}
  public init(_ text: Any) {}
}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public protocol HTTPResponder {}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct ServerRequest {}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct ServerResponse {}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct ConnectionSettings {}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct RequestRefusal {}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct DescriptorLimit {}

/// Unavailable without the trait `Server`.
@available(*, unavailable, message: "enable the trait 'Server' of the package etagere")
public struct Authority {}
#endif
