@_exported public import AppleFoundation
// Declarations of AVFoundation and of the part of Core Media that it exports.
//
// Source: Apple's documentation of AVURLAsset, AVAssetImageGenerator and CMTime (iOS 18 SDK).
@_exported public import CoreGraphics

public struct CMTime: Sendable {
  public init(seconds: Double, preferredTimescale: Int32) { fatalError() }
}

// Proof of `@unchecked Sendable`: a declaration without state. AVFoundation's own class is declared Sendable.
open class AVAsset: NSObject, @unchecked Sendable {}

// Proof of `@unchecked Sendable`: as above.
open class AVURLAsset: AVAsset, @unchecked Sendable {
  public init(url: URL, options: [String: Any]? = nil) { fatalError() }
}

open class AVAssetImageGenerator: NSObject {
  public init(asset: AVAsset) { fatalError() }
  open var appliesPreferredTrackTransform: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open var maximumSize: CGSize {
    get { fatalError() }
    set { fatalError() }
  }
  open func image(at time: CMTime) async throws -> (image: CGImage, actualTime: CMTime) { fatalError() }
}
