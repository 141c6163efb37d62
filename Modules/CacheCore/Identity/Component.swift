private import Synchronization

/// Says when two components answer alike, so that requests which use them may share one piece of work.
///
/// Never an address: structs and closures have none, and an address is used again after its owner is gone.
public struct ComponentID: Hashable, Sendable {
  /// The component's type.
  public let type: ObjectIdentifier
  /// Everything that changes the component's answers, written out.
  public let parameters: String

  /// Components of one type with equal `parameters` answer alike.
  public init(_ type: Any.Type, parameters: String = "") {
    self.type = ObjectIdentifier(type)
    self.parameters = parameters
  }

  /// An identity that no other component of this process has: for components that hold closures or state.
  public static func unique(_ type: Any.Type) -> ComponentID {
    ComponentID(type, parameters: "#\(serial.wrappingAdd(1, ordering: .relaxed).newValue)")
  }

  private static let serial = Atomic<UInt64>(0)
}

/// A replaceable part of a load: a downloader, a store, a validator, a decoder, a processor.
public protocol Component: Sendable {
  /// Equal for components that answer alike; see ``ComponentID``.
  var id: ComponentID { get }
}
