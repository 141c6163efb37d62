// swift-format-ignore-file: AlwaysUseLowerCamelCase
// Declarations of os.
//
// Source: Apple's documentation of OSSignposter and of os_proc_available_memory (iOS 18 SDK).

public struct OSSignpostID: Comparable, Sendable {
  public let rawValue: UInt64
  public init(_ value: UInt64) { fatalError() }
  public static let exclusive = OSSignpostID(0)
  public static let invalid = OSSignpostID(0)
  public static let null = OSSignpostID(0)
  public static func < (a: OSSignpostID, b: OSSignpostID) -> Bool { fatalError() }
}

// Proof of `@unchecked Sendable`: a declaration without state. The class of os is declared in the same way.
public class OSSignpostIntervalState: Codable, @unchecked Sendable {
  public static func beginState(id: OSSignpostID) -> OSSignpostIntervalState { fatalError() }
  public required init(from decoder: any Decoder) throws { fatalError() }
  public func encode(to encoder: any Encoder) throws { fatalError() }
}

// MARK: Messages

public struct OSLogPrivacy {
  public static var `public`: OSLogPrivacy { fatalError() }
  public static var `private`: OSLogPrivacy { fatalError() }
  public static var auto: OSLogPrivacy { fatalError() }
}

public struct OSLogInterpolation: StringInterpolationProtocol {
  public init(literalCapacity: Int, interpolationCount: Int) { fatalError() }
  public mutating func appendLiteral(_ literal: String) { fatalError() }
  public mutating func appendInterpolation(
    _ argumentString: @autoclosure @escaping () -> String, privacy: OSLogPrivacy = .auto
  ) { fatalError() }
  public mutating func appendInterpolation<T: FixedWidthInteger>(
    _ number: @autoclosure @escaping () -> T, privacy: OSLogPrivacy = .auto
  ) { fatalError() }
}

public struct OSLogMessage: ExpressibleByStringInterpolation, ExpressibleByStringLiteral {
  public init(stringInterpolation: OSLogInterpolation) { fatalError() }
  public init(stringLiteral value: String) { fatalError() }
}

public typealias SignpostMetadata = OSLogMessage

// MARK: Signposts

public struct OSSignposter: Sendable {
  public static let disabled = OSSignposter()
  public init() { fatalError() }
  public init(subsystem: String, category: String) { fatalError() }
  public var isEnabled: Bool { fatalError() }
  public func makeSignpostID() -> OSSignpostID { fatalError() }
  public func makeSignpostID(from object: AnyObject) -> OSSignpostID { fatalError() }
  public func beginInterval(_ name: StaticString, id: OSSignpostID = .exclusive) -> OSSignpostIntervalState { fatalError() }
  public func beginInterval(
    _ name: StaticString, id: OSSignpostID = .exclusive, _ message: SignpostMetadata
  ) -> OSSignpostIntervalState { fatalError() }
  public func endInterval(_ name: StaticString, _ state: OSSignpostIntervalState) { fatalError() }
  public func endInterval(_ name: StaticString, _ state: OSSignpostIntervalState, _ message: SignpostMetadata) { fatalError() }
  public func emitEvent(_ name: StaticString, id: OSSignpostID = .exclusive) { fatalError() }
  public func emitEvent(_ name: StaticString, id: OSSignpostID = .exclusive, _ message: SignpostMetadata) { fatalError() }
  public func withIntervalSignpost<T>(
    _ name: StaticString, id: OSSignpostID = .exclusive, around task: () throws -> T
  ) rethrows -> T { fatalError() }
}

// MARK: The process

/// A simulator, too, reports zero.
public func os_proc_available_memory() -> Int { 0 }
