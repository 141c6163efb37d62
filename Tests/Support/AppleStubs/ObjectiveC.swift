// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Declarations of the Objective-C runtime.
//
// Source: Apple's documentation of the Objective-C Runtime (iOS 18 SDK): objc/runtime.h and the structure Selector.
public struct Selector: Hashable, Sendable {
  public init() {}
}

public enum objc_AssociationPolicy: UInt, Sendable {
  case OBJC_ASSOCIATION_ASSIGN = 0
  case OBJC_ASSOCIATION_RETAIN_NONATOMIC = 1
}

public func objc_getAssociatedObject(_ object: Any, _ key: UnsafeRawPointer) -> Any? { fatalError() }
public func objc_setAssociatedObject(_ object: Any, _ key: UnsafeRawPointer, _ value: Any?, _ policy: objc_AssociationPolicy) {
  fatalError()
}
