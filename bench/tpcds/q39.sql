WITH stock AS (
    SELECT w_warehouse_sk, i_item_sk, d_moy, deviation, mean,
        CASE mean WHEN 0 THEN NULL ELSE deviation / mean END AS cov
    FROM (
        SELECT w_warehouse_sk, i_item_sk, d_moy, stddev_samp(inv_quantity_on_hand) AS deviation,
            avg(inv_quantity_on_hand) AS mean
        FROM inventory, item, warehouse, date_dim
        WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk
            AND inv_date_sk = d_date_sk AND d_year = 1999
        GROUP BY w_warehouse_sk, i_item_sk, d_moy
    ) AS monthly
    WHERE CASE mean WHEN 0 THEN 0 ELSE deviation / mean END > 1
)
SELECT m1.w_warehouse_sk, m1.i_item_sk, m1.d_moy, m1.mean, m1.cov, m2.d_moy AS next_moy,
    m2.mean AS next_mean, m2.cov AS next_cov
FROM stock AS m1, stock AS m2
WHERE m1.i_item_sk = m2.i_item_sk AND m1.w_warehouse_sk = m2.w_warehouse_sk
    AND m1.d_moy = 4 AND m2.d_moy = 5
ORDER BY m1.w_warehouse_sk, m1.i_item_sk, m1.d_moy, m1.mean, m1.cov, m2.d_moy
