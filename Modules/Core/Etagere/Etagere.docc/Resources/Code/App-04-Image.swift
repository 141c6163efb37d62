import CacheUI
import SwiftUI

struct ProductImage: View {
  let url: URL

  var body: some View {
    CachedImage(url, label: Text("Product")) { image in
      image.resizable().scaledToFill()
    } placeholder: { model in
      if model.phase.error != nil {
        Button("Retry", action: model.retry)
      } else {
        ProgressView(value: model.progress?.fraction)
      }
    }
    .downsampledToView()
    .frame(width: 120, height: 120)
    .clipped()
  }
}
