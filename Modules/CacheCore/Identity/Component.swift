private import Synchronization

/// Says when two components answer alike, so that requests which use them may share one piece of work.
///
/// Never an address: structs and closures have none, and an address is used again after its owner is gone.
public struct ComponentID: Hashable, Sendable {
  private let metatype: Any.Type
  /// Everything that changes the component's answers, written out.
  public let parameters: String

  /// Components of one type with equal `parameters` answer alike.
  public init(_ type: Any.Type, parameters: String = "") {
    metatype = type
    self.parameters = parameters
  }

  /// The component's type.
  public var type: ObjectIdentifier { ObjectIdentifier(metatype) }

  /// An identity that no other component of this process has: for components that hold closures or state.
  public static func unique(_ type: Any.Type) -> ComponentID {
    ComponentID(type, parameters: "#\(serial.wrappingAdd(1, ordering: .relaxed).newValue)")
  }

  private static let serial = Atomic<UInt64>(0)

  /// Equal for the same type with the same parameters.
  public static func == (a: Self, b: Self) -> Bool { a.type == b.type && a.parameters == b.parameters }

  /// By type and parameters.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(type)
    hasher.combine(parameters)
  }
}

extension ComponentID: CustomStringConvertible {
  /// The type's name with its module, and the parameters: `CacheTransport.FileDownloader`, `MemoryStore.MemoryCache(#3)`.
  public var description: String {
    let name = String(reflecting: metatype)
    return parameters.isEmpty ? name : "\(name)(\(parameters))"
  }
}

/// A replaceable part of a load: a downloader, a store, a validator, a decoder, a processor.
public protocol Component: Sendable {
  /// Equal for components that answer alike; see ``ComponentID``.
  var id: ComponentID { get }
}
