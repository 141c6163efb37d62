@_exported public import AppleFoundation
// Declarations of Core Animation.
//
// Source: Apple's documentation of CALayer, CAAnimation and CATransition (iOS 18 SDK).
@_exported public import CoreGraphics

public struct CATransitionType: Hashable, RawRepresentable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
  public static let fade = CATransitionType(rawValue: "fade")
}

open class CAAnimation: NSObject {
  open var duration: Double {
    get { fatalError() }
    set { fatalError() }
  }
}

open class CATransition: CAAnimation {
  open var type: CATransitionType {
    get { fatalError() }
    set { fatalError() }
  }
}

public struct CALayerContentsGravity: Hashable, RawRepresentable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
  public static let resizeAspectFill = CALayerContentsGravity(rawValue: "resizeAspectFill")
}

open class CALayer: NSObject {
  open var contents: Any? {
    get { fatalError() }
    set { fatalError() }
  }
  open var contentsGravity: CALayerContentsGravity {
    get { fatalError() }
    set { fatalError() }
  }
  open func add(_ animation: CAAnimation, forKey key: String?) { fatalError() }
}
