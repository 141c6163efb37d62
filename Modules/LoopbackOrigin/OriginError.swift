#if Origin
/// The error of an origin that could not be started.
public struct OriginError: Error, CustomStringConvertible {
  /// The requested port, or 0 for any free port.
  public let port: Int
  /// The error of the system.
  public let underlying: any Error

  /// A description of the error.
  public var description: String {
    "cannot listen on 127.0.0.1, \(port == 0 ? "any free port" : "port \(port)"): \(underlying)"
  }
}
#endif
