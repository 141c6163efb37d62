// Declarations of Vision.
//
// Source: Apple's documentation of VNGenerateAttentionBasedSaliencyImageRequest and VNImageRequestHandler (iOS 18 SDK).
public import CoreGraphics

open class VNRequest {
  public init() {}
}

public class VNRectangleObservation {
  public var boundingBox: CGRect { fatalError() }
}

public class VNSaliencyImageObservation {
  public var salientObjects: [VNRectangleObservation]? { fatalError() }
}

public final class VNGenerateAttentionBasedSaliencyImageRequest: VNRequest {
  public var results: [VNSaliencyImageObservation]? { fatalError() }
}

public struct VNImageOption: Hashable, RawRepresentable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
}

public final class VNImageRequestHandler {
  public init(cgImage: CGImage, options: [VNImageOption: Any] = [:]) { fatalError() }
  public func perform(_ requests: [VNRequest]) throws { fatalError() }
}
