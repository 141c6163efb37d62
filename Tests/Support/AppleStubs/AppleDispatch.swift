// Declarations of Dispatch that Linux's lacks.
//
// Source: Apple's documentation of DispatchSource (iOS 18 SDK), and the overlay in swiftlang/swift-corelibs-libdispatch
// (src/swift/Source.swift), which declares them for Apple platforms. There, event handlers are blocks that need not be Sendable.
@_exported public import Dispatch

/// On Apple platforms, `DispatchSourceProtocol` itself is a protocol for classes.
public protocol DispatchSourceMemoryPressure: AnyObject, DispatchSourceProtocol {
  var data: DispatchSource.MemoryPressureEvent { get }
  var mask: DispatchSource.MemoryPressureEvent { get }
}

extension DispatchSource {
  public struct MemoryPressureEvent: OptionSet, RawRepresentable, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let normal = MemoryPressureEvent(rawValue: 1)
    public static let warning = MemoryPressureEvent(rawValue: 2)
    public static let critical = MemoryPressureEvent(rawValue: 4)
    public static let all: MemoryPressureEvent = [.normal, .warning, .critical]
  }

  /// Returns a source without events, because the program ViewTree creates one.
  public class func makeMemoryPressureSource(
    eventMask: MemoryPressureEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceMemoryPressure {
    guard let source = makeUserDataAddSource(queue: queue) as? any DispatchSourceMemoryPressure else { fatalError() }
    return source
  }
}

extension DispatchSource: DispatchSourceMemoryPressure {}

extension DispatchSourceMemoryPressure {
  public var data: DispatchSource.MemoryPressureEvent { [] }
  public var mask: DispatchSource.MemoryPressureEvent { [] }
}
