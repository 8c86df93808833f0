// package: three@0.187.0
// input: {"from": [0.1, 0.2, 5]}
// output: [1,4.5,[1,-2,-3]]
import { extension } from "stile";
import { BoxGeometry, Matrix4, Mesh, MeshBasicMaterial, Raycaster, Vector3 } from "three";

export default extension({
  tools: {
    call: {
      description: "Calls three.",
      run: async (input) => {
        const mesh = new Mesh(new BoxGeometry(1, 1, 1), new MeshBasicMaterial());
        mesh.updateMatrixWorld();
        const hits = new Raycaster(new Vector3(...input.from), new Vector3(0, 0, -1)).intersectObject(mesh);
        return [hits.length, hits[0].distance, new Vector3(1, 2, 3).applyMatrix4(new Matrix4().makeRotationX(Math.PI)).toArray().map((x) => Math.round(x))];
      },
    },
  },
});
