// Declarations of Network.
//
// Source: Apple's documentation of NWPathMonitor and NWPath (iOS 18 SDK).
public import AppleDispatch

public struct NWPath: Sendable {
  public enum Status: Sendable { case satisfied, unsatisfied, requiresConnection }
  public var status: Status { fatalError() }
}

public final class NWPathMonitor: Sendable {
  public init() {}
  public var pathUpdateHandler: (@Sendable (_ newPath: NWPath) -> Void)? {
    get { fatalError() }
    set { fatalError() }
  }
  public func start(queue: DispatchQueue) { fatalError() }
  public func cancel() { fatalError() }
}
